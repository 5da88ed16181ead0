// The door of the mail servers: all that other rooms and engines may import of them.
export { openBounceServer, type BounceRules } from './bounce_server';
export { composeMessage } from './message/compose';
export type { SigningIdentity } from './message/dkim_signature';
export { parseHeader } from './message/header';
export { receiveMessage } from './message/message_file';
export { readMessageStart, type MessageText } from './message/message_text';
export { rewriteHtml } from './message/tracked';
export { isMessage, type MessageShape } from './message/verify';
export { stsPolicies } from './mta_sts';
export { outgoingMessage, signedHeader } from './outgoing';
export { classifyRejection } from './rejection';
export { SmtpReply } from './reply';
export type { MailReport } from './report';
export { failureFor } from './report/delivery_status';
export { directRoute, smarthostHop, type Route } from './route';
export {
  openSubmission,
  type MailListener,
  type MailSender,
  type Submission,
  type SubmissionRules,
} from './submission';
export { openTransport, type HopResult, type Outbound, type Transport } from './transport';
