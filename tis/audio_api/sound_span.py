"""The span of a transcription or a speech, whose children are the windows and sentences."""

from tis.observability.spans import PROVIDER
from tis.observability.work_span import WorkSpan


def sound_span(operation: str, model_id: str, traceparent: str) -> WorkSpan:
    """OpenTelemetry has no name for these operations yet."""
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model_id,
        "gen_ai.response.model": model_id,
    }
    return WorkSpan(f"{operation} {model_id}", attributes, traceparent)
