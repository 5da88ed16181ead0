// Bounces without a machine-readable part: those of qmail (QSBMF) and others that look like them, of Exim
// (X-Failed-Recipients), and notices of a mail system that quote the answer of a server.
import type { ReportPart } from '../report';
import type { RecipientOutcome } from './delivery_status';

const SYSTEM = /mailer-?daemon|postmaster|mail delivery (?:system|subsystem)|mail administrator|microsoft exchange/i;
/** What comes after is the message that was sent. */
const COPY = /^-{3,}(?!-) ?(?:below|original|this is a copy|unsent|returned|.*copy of)/im;
const DELAY = /\bwarning\b|will be retried|will continue to (?:try|be)|still trying|delayed|not yet been delivered/i;
/** A line with a permanent error, from where it begins. */
const REPLY = /(?:^|[^\d.])(5\d\d(?:[ :-]|$).*)|^(.*[^\d.]5\.\d{1,3}\.\d{1,3}\b.*)/;
const OTHER_STAGE = /(?:in reply to|after) (?:end of |initial )?(?:data|mail from|bdat|helo|ehlo|connection)\b/i;
const REASON_LINES = 10;
const RECIPIENTS_MAX = 100;
const DIAGNOSTIC_CHARACTERS = 500;

/** Recipients of a bounce that has no machine-readable part (RFC 3464). */
export function textBounceOf(parts: readonly ReportPart[]): RecipientOutcome[] {
  const header = parts[0]?.header;
  const body = parts.find(({ type, text }) => type.startsWith('text/plain') && text.trim())?.text;
  if (!header || body === undefined) return [];
  const end = COPY.exec(body);
  const notice = end ? body.slice(0, end.index) : body;
  if (DELAY.test(`${header.get('subject')} ${notice}`)) return [];
  if (/^\s*Hi\. (?:This is|The) /.test(notice)) return paragraphsOf(notice);
  const failed = header.get('x-failed-recipients');
  if (failed) {
    const addresses = failed.split(',').slice(0, RECIPIENTS_MAX);
    return addresses.flatMap((address) => eximOutcome(address.trim(), notice, addresses.length));
  }
  if (!SYSTEM.test(header.get('from') ?? '')) return [];
  const paragraphs = paragraphsOf(notice).filter(({ diagnostic }) => REPLY.test(diagnostic));
  return paragraphs.length ? paragraphs : quotedReply(notice);
}

/** `<address>:` and the reason below it, for each recipient. */
function paragraphsOf(notice: string): RecipientOutcome[] {
  return [...notice.matchAll(/^<([^<>\n]+)>:[ \t]*\n?((?:.+\n?)*)/gm)].map(([, address = '', reason = '']) =>
    outcome(address, reason),
  );
}

/** The lines below the address; of a report about one recipient, all of it. */
function eximOutcome(address: string, notice: string, count: number): RecipientOutcome[] {
  if (!address) return [];
  const lines = notice.split('\n');
  const at = lines.findIndex((line) => line.trim().toLowerCase().startsWith(address.toLowerCase()));
  const rest = at === -1 ? [] : lines.slice(at + 1);
  const end = rest.findIndex((line) => !line.trim());
  const reason = rest.slice(0, end === -1 ? REASON_LINES : end).join(' ');
  if (reason.trim() || count > 1) return [outcome(address, reason)];
  return [outcome(address, quotedReply(notice)[0]?.diagnostic ?? '')];
}

function quotedReply(notice: string): RecipientOutcome[] {
  const lines = notice.replace(/\n[ \t]+/g, ' ').split('\n');
  const match = lines.map((line) => REPLY.exec(line)).find((found) => found !== null);
  return match ? [outcome(null, match[1] ?? match[2] ?? '')] : [];
}

function outcome(address: string | null, reason: string): RecipientOutcome {
  const text = reason
    .replace(/\p{Cc}+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return {
    ...{ hasFailed: true, final: address?.toLowerCase() ?? null, original: null },
    status: /\b5\.\d{1,3}\.\d{1,3}\b/.exec(text)?.[0] ?? '',
    diagnostic: text.slice(0, DIAGNOSTIC_CHARACTERS),
    stage: OTHER_STAGE.test(text) ? 'other' : 'rcpt',
  };
}
