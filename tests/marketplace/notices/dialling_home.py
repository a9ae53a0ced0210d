"""Every name has a public address, which is answered at home; `inside.example` has a private one."""

from tis.network.dialling import Dialler


def dialler_to(port: int) -> Dialler:
    def resolve(host: str, _: int) -> list[str]:
        return ["10.0.0.7"] if host == "inside.example" else ["93.184.216.34"]

    return Dialler(resolve=resolve, dial=lambda address, _: ("127.0.0.1", port))
