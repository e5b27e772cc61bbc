"""Which accessories are hair."""

from hairkit.rigging.find import WORD
from hairkit.sway.stage import Accessory


def is_hair(accessory: Accessory) -> bool:
    """Return whether an accessory's kind is hair or its name has "hair" in it, case forgiven."""
    return accessory.kind.lower() == WORD or WORD in accessory.name.lower()
