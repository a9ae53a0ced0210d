"""Places of Indonesia by their names: provinces, cities and regencies, with codes of the Ministry of Home Affairs.

`gazetteer()` returns the `Gazetteer`: `find` a name, `code_of` the city of an account, `named_in` the words of a
search. The tables lie here: the places, made by `scripts/write_places.py`; our aliases; how texts use the names.
"""
