// Classification of rejections: does a server refuse the mailbox, or the message and its sender? Words decide, since
// servers answer 550 to both, and many with an enhanced code (RFC 3463) that says something else.
import type { RejectionKind } from '../../core/mail/rejection';
import {
  BARE_REFUSAL,
  MAILBOX_FULL,
  NAMES_MAILBOX,
  NO_MAILBOX,
  NOT_THE_MAILBOX,
  REPUTATION_LIST,
} from './rejection_patterns';

export interface Rejection {
  /** `rcpt`: the answer to a recipient. `other`: before or after it, for example after the text of the message. */
  stage: 'rcpt' | 'other';
  /** Of the answer; null where no server has answered, and in reports, whose text has it. */
  code: number | null;
  /** What the server has answered, or the diagnostic of a report. */
  response: string;
  recipient: string;
}

const ENHANCED = /\b([45])\.(\d{1,3})\.(\d{1,3})\b/;
/** Bad mailbox, system or syntax; moved, null MX, disabled (RFC 3463 §3.2, §3.3, RFC 7505). */
const MAILBOX_CODES = ['1.1', '1.2', '1.3', '1.6', '1.10', '2.1'];
/** Microsoft 365 answers this for addresses that its directory lacks, and says nothing else about them. */
const ACCESS_DENIED = /recipient address(?:es)? rejected ?: ?access denied/;
const LOCAL_PART_MIN = 3;

/** Only the answer to a recipient, and a permanent one, can say that a mailbox does not exist. */
export function classifyRejection(rejection: Rejection): RejectionKind {
  const { stage, code } = rejection;
  const lower = rejection.response.toLowerCase();
  const [, grade, subject, detail] = ENHANCED.exec(lower) ?? [];
  const enhanced = grade === undefined ? '' : `${subject}.${detail}`;
  const words = normalizeResponse(lower);
  const kind = kindOf(rejection, words, enhanced);
  if (stage === 'rcpt' && grade !== '4' && (code === null || code >= 500)) return kind;
  const isMailbox = kind === 'mailbox' || enhanced.startsWith('2.') || MAILBOX_FULL.test(words);
  return kind !== 'other' && isMailbox ? 'unclear' : 'other';
}

/** A server that refuses a message because it has not seen its sender before: it is asked again, whatever its code. */
export function isGreylisting(response: string): boolean {
  return /gr[ea]y-?\s?list/i.test(response);
}

function kindOf({ response, recipient }: Rejection, words: string, enhanced: string): RejectionKind {
  if (enhanced === '4.1' && ACCESS_DENIED.test(words)) return 'mailbox';
  const local = recipient.slice(0, recipient.lastIndexOf('@')).toLowerCase();
  const unnamed = local.length < LOCAL_PART_MIN ? words : words.replaceAll(local, '@');
  if (NOT_THE_MAILBOX.test(unnamed) || REPUTATION_LIST.test(withoutAddresses(response.toLowerCase()))) return 'other';
  if (enhanced === '2.2' || MAILBOX_FULL.test(words)) return 'unclear';
  if (NO_MAILBOX.test(words)) return 'mailbox';
  if (MAILBOX_CODES.includes(enhanced))
    return BARE_REFUSAL.test(words) && !NAMES_MAILBOX.test(words) ? 'unclear' : 'mailbox';
  return enhanced.startsWith('6.') ? 'other' : 'unclear';
}

/** Without names of addresses and hosts: `spam-reports@` is no word about spam. */
function normalizeResponse(lower: string): string {
  return withoutAddresses(lower)
    .replaceAll('’', "'")
    .replace(/\b(?:mail ?from|rcpt to):? ?@/g, ' ')
    .replace(/smtp error from remote mail server after /g, ' ')
    .replace(/\bhttps?:\/\/\S+/g, ' ')
    .replace(/\brelay=\S+/g, ' ')
    .replace(/\bresolver\.adr\.(?:ex)?recip(?:ient)?notfound/g, ' recipient not found ')
    .replace(/\b[a-z\d-]+(?:\.[a-z\d-]+)*\.[a-z][a-z\d-]+\b/g, ' ')
    .replace(/[\s_]+/g, ' ');
}

function withoutAddresses(lower: string): string {
  return lower.replace(/<[^<>\s]*@[^<>\s]*>|[^\s<>()[\]"',;:]+@[^\s<>()[\]"',;:]+/g, ' @ ');
}
