"""A server without HTTP that sends what is due: tests kill it. Arguments: database, ports of webhooks and mail."""

import sys
import threading

from tests.marketplace.conftest import SECRET
from tests.marketplace.notices.dialling_home import dialler_to
from tis.database.database import Database
from tis.marketplace.kit.notice_deliveries import WebhookRules
from tis.marketplace.mail import SmtpMailer
from tis.marketplace.market import Market, MarketRules


def _main() -> None:
    url, webhook_port, smtp_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rules = MarketRules(
        jwt_secret=SECRET,
        public_url="https://market.example",
        webhooks=WebhookRules(allow_http=True, call_seconds=30),
        mailer=SmtpMailer("127.0.0.1", smtp_port, "noreply@shop.example", security="none"),
    )
    market = Market(Database(url), rules, dialler=dialler_to(webhook_port))
    market.open()
    market.wake_senders()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    _main()
