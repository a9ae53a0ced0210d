"""Sentences that say what goods are for and name none, over catalogue.csv; writes wishes.jsonl beside this file.

By the author of `scripts/demo_embedding/uses.csv`, so the small model has an easy set here: it tells what search by
meaning is for, not how good a model is. A product is relevant if its name matches the expression.
"""

import csv
import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent
WISHES = [
    ("sesuatu untuk menghangatkan badan di malam hari", r"^Selimut|^Bed Cover|^Sleeping Bag|Hoodie"),
    ("biar baju tidak kusut", r"Setrika|Steamer|Steam Iron"),
    ("supaya kamar tidak gerah", r"Kipas|^AC "),
    ("sesuatu supaya atap tidak bocor", r"Pelapis Bocor"),
    ("buat tidur nyenyak di pesawat", r"Bantal Leher"),
    ("hp cepat habis baterai di jalan", r"Power ?bank|Power Bank|Powerbank"),
    ("sesuatu biar tidak basah di jalan", r"^Jas Hujan"),
    ("mau menginap di gunung", r"^Tenda (?!Anak)|^Sleeping Bag|Carrier|^Matras Camping"),
    ("buat mencetak tugas sekolah", r"[Pp]rinter(?! USB)(?!.*Kasir)"),
    ("untuk melubangi tembok", r"^Bor |^Mesin Bor"),
    ("menyimpan berkas besar", r"^SSD|^Harddisk|SN580"),
    ("membersihkan karpet dari debu", r"Vacuum"),
    ("sinyal internet lemah di kamar belakang", r"Extender|Router|Modem"),
    ("memantau rumah dari jauh", r"CCTV"),
    ("bayi sering mengompol", r"Popok(?! Dewasa)|Merries"),
    ("supaya kulit tidak terbakar matahari", r"Sun|SPF"),
    ("melembutkan wajah yang kering", r"^(Pelembab|Moisturizer|Cetaphil Moist)"),
    ("lari pagi", r"Lari|Running"),
    ("menggoreng telur supaya tidak lengket", r"Teflon|Wok Pan|Wajan"),
    ("merebus air untuk teh", r"Teko Listrik|Termos Air"),
    ("something to grind my coffee beans", r"Gilingan Kopi"),
    ("something for a flat tyre", r"Kompresor"),
    ("keep water hot all day", r"Termos|Tumbler"),
    ("I want to build muscles at home", r"Dumbbell|Kettlebell"),
    ("protect my head on a motorbike", r"^Helm (?!Sepeda)"),
    ("a thing to mount shelves on the wall", r"^Bor |^Mesin Bor"),
    ("show my face in online meetings", r"Webcam"),
    ("something to block out noise", r"Headset|Headphone|TWS|AirPods|Buds|Earphone"),
    ("my laptop gets too hot", r"Cooling Pad|dengan Kipas|Stand Laptop"),
    ("carry books to school", r"Tas Ransel"),
    ("back pain from sitting all day", r"Kursi (Kantor|Direktur|Gaming)|Office Chair"),
    ("put on the floor for exercise", r"Matras (Yoga|Senam)|Yoga Mat"),
]


def main() -> None:
    with (FOLDER / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        catalogue = list(csv.DictReader(file))
    lines = []
    for query, expression in WISHES:
        relevant = [row["id"] for row in catalogue if re.search(expression, row["name"])]
        assert relevant, query
        lines.append(json.dumps({"query": query, "kind": "wish", "relevant": relevant}, ensure_ascii=False))
    (FOLDER / "wishes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
