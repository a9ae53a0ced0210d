"""Who asks, as the assistant and the catalogue's tools know them."""

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import Viewer
from tis.marketplace.assistant.preferences import preferences_of
from tis.marketplace.kit.geo import Point
from tis.marketplace.products.delivery import Language
from tis.marketplace.tables import User


def viewer_of(session: Session, user_id: int | None, language: Language) -> Viewer:
    """A user's own place is the origin of distances. Suppliers and anonymous callers have none."""
    user = None if user_id is None else session.get(User, user_id)
    if user is None:
        return Viewer(language)
    has_place = user.latitude is not None and user.longitude is not None
    origin = Point(user.latitude or 0.0, user.longitude or 0.0) if has_place else None
    return Viewer(language, user.id, origin, user.city, preferences_of(session, user.id))
