"""Imports in the background: sheets with more rows than one transaction takes, without blocking other writers for long.

The rows wait in the database in batches. A transaction imports one batch, deletes it and counts it, so after a kill the
rest goes on with the next batch, on any server: docs/decisions/0041-sheets.md.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from uuid import uuid4

from sqlalchemy import delete, exists, func, or_, select
from sqlalchemy.orm import Session, defer

from tis.database.errors import DatabaseUnavailable
from tis.errors import Conflict, NotFound, QueueFull, ServiceError
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import supplier_for_member
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.sheets.importing import MAX_REPORTED_PROBLEMS, SheetPlan, import_sheet
from tis.marketplace.sheets.rows import RowProblem, Sheet, SheetRow
from tis.marketplace.sheets.sheet_pictures import has_fetches, queue_pictures
from tis.marketplace.tables import PictureFetch, SheetBatch, SheetImport
from tis.observability.logs import log_exception

_UNFINISHED = ("waiting", "running")
_MAX_UNFINISHED_OF_SUPPLIER = 2
_MAX_UNFINISHED = 100
_NUM_KEPT = 20  # finished imports of a supplier; older ones are forgotten
_MAX_TRIES = 3
_RETRY_AFTER_SECONDS = 30
_log = logging.getLogger("tis.marketplace")
OpenTransaction = Callable[[], AbstractContextManager[Session]]
# The rights that an account has now, for a request id; None if it is closed or suspended.
FindPrincipal = Callable[[Session, str | None, str], Principal | None]


def add_import(session: Session, principal: Principal, plan: SheetPlan, batch_rows: int) -> SheetImport:
    """For the rows that the plan accepted; the problems of the others are reported."""
    job = _add_job(session, principal, plan)
    for position, start in enumerate(range(0, len(plan.accepted), batch_rows)):
        rows = [[row.number, row.values] for row in plan.accepted[start : start + batch_rows]]
        session.add(SheetBatch(import_id=job.id, position=position, rows=rows))
    session.flush()
    return job


def add_picture_import(session: Session, principal: Principal, plan: SheetPlan) -> SheetImport:
    """Of a sheet whose rows are imported in this transaction: its pictures are still to be fetched."""
    job = _add_job(session, principal, plan)
    job.status, job.num_done = "running", job.num_rows
    report = plan.report()
    job.num_created, job.num_updated, job.num_unchanged = report.created, report.updated, report.unchanged
    queue_pictures(session, job.id, plan.sheet_pictures)
    return job


def _add_job(session: Session, principal: Principal, plan: SheetPlan) -> SheetImport:
    _require_room(session, plan.supplier_id)
    num_refused = len({problem.row for problem in plan.problems})
    job = SheetImport(
        id=str(uuid4()),
        supplier_id=plan.supplier_id,
        actor=principal.account,
        request_id=principal.request_id,
        num_rows=num_refused + len(plan.accepted),
        num_done=num_refused,
        problems=[problem.model_dump() for problem in plan.problems[:MAX_REPORTED_PROBLEMS]],
    )
    session.add(job)
    session.flush()
    return job


def end_row_of_import(session: Session, job: SheetImport, problems: Sequence[tuple[int, str]]) -> None:
    """The pictures of a row are there, or are not to be had. With the last ones the import ends: its row is locked."""
    found = [RowProblem(row=row, field="pictures", message=message).model_dump() for row, message in problems]
    job.problems = [*job.problems, *found][:MAX_REPORTED_PROBLEMS]
    has_batches = session.scalar(select(exists().where(SheetBatch.import_id == job.id)))
    if job.status in _UNFINISHED and not has_batches and not has_fetches(session, job.id):
        _finish(session, job, "done")


def num_fetches(session: Session, import_ids: Collection[str]) -> dict[str, int]:
    """The rows of each import whose pictures are still to be fetched; without those that wait for none."""
    waiting = select(PictureFetch.import_id, func.count()).where(PictureFetch.import_id.in_(import_ids))
    rows = session.execute(waiting.group_by(PictureFetch.import_id))
    return {import_id: int(number) for import_id, number in rows}


def list_imports(session: Session, principal: Principal, supplier_id: int) -> Sequence[SheetImport]:
    """Newest first."""
    supplier_for_member(session, principal, supplier_id)
    jobs = select(SheetImport).where(SheetImport.supplier_id == supplier_id)
    newest_first = jobs.order_by(SheetImport.created_at.desc()).limit(_NUM_KEPT + _MAX_UNFINISHED_OF_SUPPLIER)
    return session.scalars(newest_first.options(defer(SheetImport.problems))).all()


def find_import(session: Session, principal: Principal, supplier_id: int, import_id: str) -> SheetImport:
    supplier_for_member(session, principal, supplier_id)
    job = session.get(SheetImport, import_id)
    if job is None or job.supplier_id != supplier_id:
        raise NotFound("Import not found")
    return job


def _require_room(session: Session, supplier_id: int) -> None:
    unfinished = select(func.count()).select_from(SheetImport).where(SheetImport.status.in_(_UNFINISHED))
    of_supplier = session.scalar(unfinished.where(SheetImport.supplier_id == supplier_id)) or 0
    if of_supplier >= _MAX_UNFINISHED_OF_SUPPLIER:
        message = f"{of_supplier} imports of this supplier are not finished. Retry later."
        raise QueueFull(message, retry_after=_RETRY_AFTER_SECONDS)
    if (session.scalar(unfinished) or 0) >= _MAX_UNFINISHED:
        raise QueueFull("Too many imports wait. Retry later.", retry_after=_RETRY_AFTER_SECONDS)


class ImportWorker:
    """Every server has one; the lock on the row of an import decides which of them takes its next batch."""

    def __init__(
        self,
        reading: OpenTransaction,
        writing: OpenTransaction,
        search: ProductSearch,
        find_principal: FindPrincipal,
        max_products: int | None = None,  # of a supplier
        *,
        public_url: str = "",
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._search = search
        self._find_principal = find_principal
        self._max_products = max_products
        self._public_url = public_url

    def step(self) -> bool:
        """Imports the next batch; False if there is none. Imports take turns: the longest untouched is next."""
        with self._reading() as session:
            if session.scalar(select(SheetImport.id).where(SheetImport.status.in_(_UNFINISHED)).limit(1)) is None:
                return False
        taken: list[str] = []
        for try_number in range(1, _MAX_TRIES + 1):
            try:
                with self._writing() as session:
                    return self._import_next(session, taken)
            except Conflict as error:  # another request created a SKU meanwhile: now it is known
                if try_number == _MAX_TRIES:
                    self._fail(taken, error.message)
            except DatabaseUnavailable:
                raise
            except ServiceError as error:
                self._fail(taken, error.message)
                break
            except Exception as fault:
                if not taken:
                    raise
                log_exception("an import of a sheet failed", fault, "-")
                self._fail(taken, "Internal error. The rows that are not counted as done were not imported.")
                break
        return True

    def _import_next(self, session: Session, taken: list[str]) -> bool:
        """Adds the id of the import to `taken`, as the transaction may fail."""
        # Of one that only waits for pictures, `PictureFetcher` does the rest.
        has_work = or_(
            exists().where(SheetBatch.import_id == SheetImport.id),
            ~exists().where(PictureFetch.import_id == SheetImport.id),
        )
        unfinished = select(SheetImport).where(SheetImport.status.in_(_UNFINISHED), has_work)
        oldest = unfinished.order_by(SheetImport.touched_at, SheetImport.id).limit(1)
        job = session.scalar(oldest.with_for_update(skip_locked=True))
        if job is None:
            return False
        taken.append(job.id)
        principal = self._find_principal(session, job.actor, job.request_id or "-")
        if principal is None:
            raise NotFound("The account that sent this sheet is closed or suspended.")
        batches = select(SheetBatch).where(SheetBatch.import_id == job.id).order_by(SheetBatch.position).limit(1)
        if batch := session.scalar(batches):
            self._import_batch(session, principal, job, batch)
        job.status, job.touched_at = "running", now()
        if (batch is None or job.num_done >= job.num_rows) and not has_fetches(session, job.id):
            _finish(session, job, "done")
        return True

    def _import_batch(self, session: Session, principal: Principal, job: SheetImport, batch: SheetBatch) -> None:
        rows = [SheetRow(number, values) for number, values in batch.rows]
        sheet = Sheet(rows, problems=[], columns=[], num_rows=len(rows))
        plan = import_sheet(
            session,
            principal,
            self._search,
            job.supplier_id,
            sheet,
            public_url=self._public_url,
            partial=True,
            max_products=self._max_products,
        )
        queue_pictures(session, job.id, plan.sheet_pictures)
        report = plan.report()
        job.num_created += report.created
        job.num_updated += report.updated
        job.num_unchanged += report.unchanged
        job.num_done += len(rows)
        problems = [*job.problems, *(problem.model_dump() for problem in report.errors)]
        job.problems = problems[:MAX_REPORTED_PROBLEMS]
        session.delete(batch)

    def _fail(self, taken: list[str], detail: str) -> None:
        with self._writing() as session:
            unfinished = select(SheetImport).where(SheetImport.id == taken[-1], SheetImport.status.in_(_UNFINISHED))
            if job := session.scalar(unfinished.with_for_update()):
                job.detail = detail[:500]
                _finish(session, job, "failed")


def _finish(session: Session, job: SheetImport, status: str) -> None:
    job.status, job.ended_at = status, now()
    session.execute(delete(SheetBatch).where(SheetBatch.import_id == job.id))
    finished = select(SheetImport.id).where(
        SheetImport.supplier_id == job.supplier_id, SheetImport.id != job.id, SheetImport.ended_at.is_not(None)
    )
    newest_first = finished.order_by(SheetImport.created_at.desc(), SheetImport.id)
    old = list(session.scalars(newest_first.offset(_NUM_KEPT - 1).limit(_NUM_KEPT)))
    if old:
        session.execute(delete(SheetImport).where(SheetImport.id.in_(old)))
    _log.info("the import of a sheet with %d rows is %s", job.num_rows, status)
