// Validation of originators: each mailbox of From, Sender and their Resent variants belongs to a domain of the zone
// (RFC 6409 §8.1), and is unambiguous.
import { isUtf8 } from 'node:buffer';
import { normalizeMailbox } from '../../core/protocols/mailbox';
import { fieldsNamed, valueOf, type HeaderField } from './message/header';
import { SmtpReply } from './reply';

/** Verified domains, in ASCII and lower case. */
type Domains = Pick<ReadonlyMap<string, string>, 'has'>;

const QUOTED_TEXT = '"(?:[^"\\\\]|\\\\.)*"';
const NAME_AND_ADDRESS = new RegExp(`^((?:${QUOTED_TEXT}|[^"<>])*)<((?:${QUOTED_TEXT}|[^"<>])*)>\\s*$`);
const QUOTED_TEXTS = new RegExp(QUOTED_TEXT, 'g');
const ENCODED_WORDS = /=\?[^?\s]+\?[bq]\?[^?\s]*\?=/gi;

/**
 * Validates the originators (RFC 5322 §3.6.2, §3.6.6): one From, at most one Sender, and any number of Resent fields.
 * @returns the first mailbox of From @throws SmtpReply
 */
export function requireOwnOriginators(domains: Domains, fields: readonly HeaderField[]): string {
  const [field, ...more] = fieldsNamed(fields, 'from');
  if (!field || more.length) throw new SmtpReply(550, '5.6.0', 'The message needs exactly one From field.');
  const mailboxes = requireOwnMailboxes(domains, field, 'From');
  const senders = fieldsNamed(fields, 'sender');
  if (senders.length > 1) throw new SmtpReply(550, '5.6.0', 'The message has more than one Sender field.');
  for (const sender of senders) requireSingle(requireOwnMailboxes(domains, sender, 'Sender'), 'Sender');
  for (const resent of fieldsNamed(fields, 'resent-from')) requireOwnMailboxes(domains, resent, 'Resent-From');
  for (const resent of fieldsNamed(fields, 'resent-sender'))
    requireSingle(requireOwnMailboxes(domains, resent, 'Resent-Sender'), 'Resent-Sender');
  return mailboxes[0] as string;
}

/** @param address in its normal form @throws SmtpReply */
export function requireOwn(domains: Domains, address: string, where: string): void {
  const domain = domainOf(address);
  if (domains.has(domain)) return;
  const text = address ? `${domain || 'it'} is not a verified domain of this relay zone` : 'it is empty';
  throw new SmtpReply(550, '5.7.1', `The sender in the ${where} is not allowed: ${text}.`);
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

function requireOwnMailboxes(domains: Domains, field: HeaderField, name: string): string[] {
  const mailboxes = mailboxesOf(valueOf(field));
  if (!mailboxes?.length) throw new SmtpReply(550, '5.6.0', `The ${name} field cannot be read.`);
  for (const mailbox of mailboxes) requireOwn(domains, mailbox, `${name} field`);
  return mailboxes;
}

function requireSingle(mailboxes: readonly string[], name: string): void {
  if (mailboxes.length > 1) throw new SmtpReply(550, '5.6.0', `The ${name} field has more than one mailbox.`);
}

/**
 * Addresses of a mailbox list (RFC 5322 §3.4) in their normal form, without display names, comments and group names. An
 * address in the position of a display name counts as an address: some readers show it as the sender.
 * @param value unfolded, as bytes (latin1)
 * @returns null where the list is ambiguous: readers could show another sender
 */
function mailboxesOf(value: string): string[] | null {
  const bytes = Buffer.from(value, 'latin1');
  // Invalid UTF-8 is allowed in names only.
  const elements = elementsOf(isUtf8(bytes) ? bytes.toString() : value.replace(/[\x80-\xff]/g, '\x01'));
  if (!elements) return null;
  const found = elements.flatMap((text): (string | null)[] => {
    if (!text.trim()) return [];
    const [, name = '', address = text] = NAME_AND_ADDRESS.exec(text) ?? [];
    const shown = name.replace(QUOTED_TEXTS, ' ').replace(ENCODED_WORDS, ' ');
    return [...(shown.includes('@') ? [normalizeMailbox(name.trim())] : []), normalizeMailbox(address.trim())];
  });
  return found.every((address) => address !== null) ? found : null;
}

/**
 * Members of the list and of its groups; comments become a space. Null for an unterminated quote, comment or bracket.
 */
function elementsOf(value: string): string[] | null {
  const elements = [''];
  const open = { depth: 0, quoted: false, bracket: false };
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at] as string;
    const text = char === '\\' ? value.slice(at, (at += 1) + 1) : char;
    if (open.depth) {
      if (text === '(' || text === ')') open.depth += text === '(' ? 1 : -1;
      continue;
    }
    if (text === '"') open.quoted = !open.quoted;
    else if (!open.quoted && separates(text, open, elements)) continue;
    elements[elements.length - 1] += text;
  }
  return open.quoted || open.depth || open.bracket ? null : elements;
}

/** Handles a character outside of quotes and comments. True where it does not belong to an element. */
function separates(char: string, open: { depth: number; bracket: boolean }, elements: string[]): boolean {
  if (char === '(') {
    open.depth += 1;
    elements[elements.length - 1] += ' ';
    return true;
  }
  if (char === '<') open.bracket = true;
  if (char === '>') open.bracket = false;
  if (open.bracket) return false;
  if (char === ',' || char === ';') return elements.push('') > 0;
  // The end of a group name. A group name with an address in it is not accepted as one.
  if (char !== ':' || (elements[elements.length - 1] as string).replace(QUOTED_TEXTS, '').includes('@')) return false;
  elements[elements.length - 1] = '';
  return true;
}
