/**
 * What a rejection is about. `mailbox`: the address does not exist, or takes no mail any more. `unclear`: the mailbox
 * may be full, or the server gives no reason. `other`: the server refuses the message, its sender or this host, or has
 * not answered: nothing is known about the mailbox.
 */
export type RejectionKind = 'mailbox' | 'unclear' | 'other';
