/** What a link in a mail opens. web/messages/id/link.js has the same names. */

export default {
  "link.reset": "Set a new password",
  "link.reset.about": "You asked for it by mail. All sessions of the account end.",
  "link.reset.do": "Set the password",
  "link.reset.done": "The password is set. Sign in with it.",
  "link.confirm": "Confirm your e-mail",
  "link.confirm.about": "You registered with this address. If it was not you, close this page.",
  "link.confirm.do": "Confirm",
  "link.confirm.done": "Your e-mail is confirmed.",
  "link.change": "Use this e-mail from now on",
  "link.change.about": "You asked for another e-mail of your account. It changes when you press the button.",
  "link.change.do": "Use this e-mail",
  "link.change.done": "Your account has this e-mail now.",
  "link.void": "This link was used or has expired. Ask for a new one.",
  "link.incomplete.title": "This link is not complete",
  "link.incomplete": "Copy the whole link out of the mail, with what stands behind the #. A page that was read anew has forgotten it: open the link once more.",
  "link.to.shop": "To the shop",
};
