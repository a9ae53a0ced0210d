"""The mails that a server wrote into its MAIL_FOLDER."""

import re
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from tests.marketplace.database_failures import wait_until_true


@dataclass(frozen=True)
class Mailbox:
    folder: Path

    def mails_to(self, address: str) -> list[EmailMessage]:
        """Oldest first."""
        files = sorted(self.folder.glob("*.eml"), key=lambda file: file.stat().st_mtime_ns)
        mails = [message_from_bytes(file.read_bytes(), _class=EmailMessage, policy=default) for file in files]
        return [mail for mail in mails if mail["To"] == address]

    def wait_for(self, address: str, purpose: str, number: int = 1) -> str:
        """The secret of the link in the mail, once `number` mails of this purpose have arrived."""
        wait_until_true(lambda: len(self._secrets(address, purpose)) >= number)
        return self._secrets(address, purpose)[-1]

    def _secrets(self, address: str, purpose: str) -> list[str]:
        texts = (text_of(mail) for mail in self.mails_to(address))
        found = (re.search(rf"/api/auth/link#{purpose}=(\S+)", text) for text in texts)
        return [match[1] for match in found if match]


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body()
    assert body is not None
    return str(body.get_content())
