"""The errors of an engine."""

from tis.errors import BadRequest, Conflict, GenerationFailed, NotFound, ServiceError, Unavailable


class ContextLengthExceeded(BadRequest):
    code = "context_length_exceeded"

    def __init__(self, limit: int, reason: str, param: str = "messages") -> None:
        # LiteLLM and LangChain recognise an overflow by this beginning.
        super().__init__(f"This model's maximum context length is {limit} tokens. However, {reason}", param=param)


class GrammarTooComplex(GenerationFailed):
    """Found while the answer is made. It would fail again: clients must not retry it."""

    status = 400
    type = "invalid_request_error"
    code = "schema_too_large"  # as where it is found before the answer


class ModelNotFound(NotFound):
    code = "model_not_found"

    def __init__(self, name: str, task: str = "") -> None:
        """Without a name, no model is served for the task."""
        no_name = f"This server has no model for {task}: its catalogue needs one with that task."
        super().__init__(
            f"The model `{name}` does not exist or you do not have access to it." if name else no_name, param="model"
        )


class WrongTask(BadRequest):
    """The model is one of another kind."""

    code = "model_not_supported"

    def __init__(self, name: str, task: str) -> None:
        super().__init__(f"The model `{name}` cannot do this: it is served for {task}.", param="model")


class ModelLoading(Unavailable):
    code = "model_loading"


class LoadFailed(Unavailable):
    code = "model_load_failed"


class ModelTooLarge(LoadFailed):
    """It can never be loaded here."""

    code = "model_too_large"


class ModelMemoryFull(Unavailable):
    """It could be loaded if a model that is in use now were not."""

    code = "model_memory_full"


class ModelInUse(Conflict):
    code = "model_in_use"


class WorkerDied(Unavailable):
    code = "worker_died"


class OutOfMemory(Unavailable):
    code = "out_of_memory"

    def __init__(self) -> None:
        super().__init__(
            "The server has not enough memory for this request now. Retry later, or send a smaller one.", retry_after=5
        )


class GenerationInterrupted(ServiceError):
    """An answer that another process began cannot be resumed here."""

    code = "generation_interrupted"
