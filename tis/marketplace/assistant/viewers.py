"""Who asks, as the assistant and the catalogue's tools know them."""

from sqlalchemy.orm import Session

from tis.marketplace.assistant.goods import Viewer
from tis.marketplace.kit.geo import Point
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.delivery import Language
from tis.marketplace.tables import User


def viewer_of(session: Session, principal: Principal, language: Language) -> Viewer:
    """A user's own place is the origin of distances. Suppliers and anonymous callers have none."""
    user = None if principal.user_id is None else session.get(User, principal.user_id)
    if user is None:
        return Viewer(language)
    if user.latitude is None or user.longitude is None:
        return Viewer(language, user.id, city=user.city)
    return Viewer(language, user.id, Point(user.latitude, user.longitude), user.city)
