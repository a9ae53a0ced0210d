/** The drawn map of shop and admin's desk. web/messages/id/map.js has the same names. */

export default {
  map: "Map",
  "map.keys": "Arrow keys move the map, plus and minus zoom, 0 shows all.",
  "map.nearer": "Zoom in",
  "map.farther": "Zoom out",
  "map.all": "Show all, or the whole country",
  "map.group": "{number} here: {names}",
  "map.and.others": "and {number} more at the same place",
};
