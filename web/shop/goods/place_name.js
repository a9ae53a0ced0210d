/** A place of a shop in a few words: "Tugu Elektronik Malang", with its city if the name does not say it. */
export const placeName = ({ name, city }) => (name.toLowerCase().includes(city.toLowerCase()) ? name : `${name}, ${city}`);
