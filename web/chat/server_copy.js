/** Conversations that the server keeps, through /v1/conversations. */

export function keepOnServer() {}

export function keepInBrowser() {}
