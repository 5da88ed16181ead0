// The arguments of MAIL and RCPT (RFC 5321 §4.1.2): an address in angle brackets, and extension parameters.
import type { SMTPServerAddress } from 'smtp-server';
import { normalizeMailbox } from '../../../core/protocols/mailbox';
import { SmtpReply } from '../reply';

/** A parsed path: an address in its normal form. */
interface ParsedPath extends SMTPServerAddress {
  /** An unknown parameter, or an unsupported value: the command is rejected. */
  refused?: string;
  /** A repeated parameter. */
  duplicate?: string;
  /** Has non-ASCII characters, which require SMTPUTF8 (RFC 6531 §3.4). */
  isUtf8: boolean;
}

interface Parameter {
  keyword: string;
  value: string | null;
}

/** `null`: a flag without a value. */
type Honoured = Readonly<Record<string, RegExp | null>>;

/** RFC 1870, RFC 6152, RFC 6531. */
const OF_MAIL: Honoured = { SIZE: /./, BODY: /^(7BIT|8BITMIME)$/i, SMTPUTF8: null };
/** RFC 4954 §5: AUTH is accepted, and treated as `<>`, since no client is trusted to act for others. */
const OF_MAIL_AFTER_LOGIN: Honoured = { ...OF_MAIL, AUTH: /^(<>|(?:[!-*,-<>-~]|\+[0-9A-F]{2})+)$/ };
const OF_RCPT: Honoured = {};

const ROUTE = /^@[\w.-]+(?:,@[\w.-]+)*:/;
const PARAMETER = /^([A-Za-z0-9][A-Za-z0-9-]*)(?:=([!-<>-~\u0080-\u{10ffff}]+))?$/u;

/** @returns false for a syntax error */
export function parsePath(
  name: 'mail from' | 'rcpt to',
  command: string,
  { takesLogin }: { takesLogin: boolean },
): ParsedPath | false {
  const colon = command.indexOf(':');
  if (colon === -1 || command.slice(0, colon).toLowerCase() !== name) return false;
  const text = command.slice(colon + 1).trim();
  const end = endOfPath(text);
  if (end === -1 || !/^( |$)/.test(text.slice(end))) return false;
  const address = addressOf(text.slice(1, end - 1), name);
  const parameters = parametersOf(text.slice(end));
  if (address === null || !parameters) return false;
  const honoured = name === 'rcpt to' ? OF_RCPT : takesLogin ? OF_MAIL_AFTER_LOGIN : OF_MAIL;
  const isUtf8 = /[^\0-\x7f]/.test(text);
  return { address, isUtf8, ...judged(parameters, honoured) } as ParsedPath;
}

/**
 * Requirements of all servers for an address. @param takesUtf8 whether the transaction has announced SMTPUTF8
 * @throws SmtpReply 555 for an unsupported parameter, 553 for non-ASCII characters without SMTPUTF8
 */
export function requireHonouredPath(path: SMTPServerAddress, takesUtf8: boolean): void {
  const { refused, isUtf8 } = path as ParsedPath;
  if (refused !== undefined)
    throw new SmtpReply(555, '5.5.4', `The parameter ${refused.slice(0, 40)} is not offered here.`);
  if (isUtf8 && !takesUtf8)
    throw new SmtpReply(553, '5.6.7', 'An address beyond ASCII needs SMTPUTF8 in MAIL (RFC 6531).');
}

/** Whether the MAIL of the transaction has announced SMTPUTF8. The session also keeps the flag of rejected commands. */
export function announcesUtf8(mail: SMTPServerAddress | false): boolean {
  return mail !== false && mail.args !== false && mail.args['SMTPUTF8'] === true;
}

/** Position after the closing bracket, ignoring brackets in a quoted local part; -1 where there is none. */
function endOfPath(text: string): number {
  return /^<(?:"(?:[^"\\]|\\.)*"|[^"<>])*>/.exec(text)?.[0].length ?? -1;
}

/** A source route is ignored (RFC 5321 appendix C), `postmaster` needs no domain (§4.1.1.3). */
function addressOf(path: string, name: 'mail from' | 'rcpt to'): string | null {
  if (path === '' && name === 'mail from') return '';
  const address = path.replace(ROUTE, '');
  if (name === 'rcpt to' && address.toLowerCase() === 'postmaster') return address;
  return normalizeMailbox(address);
}

function parametersOf(text: string): Parameter[] | null {
  const found = text.split(' ').flatMap((word): (Parameter | null)[] => {
    if (!word) return [];
    const [, keyword, value] = PARAMETER.exec(word) ?? [];
    return [keyword === undefined ? null : { keyword: keyword.toUpperCase(), value: value ?? null }];
  });
  return found.every((each) => each !== null) ? found : null;
}

function judged(
  parameters: readonly Parameter[],
  honoured: Honoured,
): Pick<ParsedPath, 'args' | 'refused' | 'duplicate'> {
  const args: Record<string, string | true> = {};
  for (const { keyword, value } of parameters) {
    if (Object.hasOwn(args, keyword)) return { args, duplicate: keyword };
    const form = honoured[keyword];
    if (form === undefined || (form === null ? value !== null : value === null || !form.test(value)))
      return { args: {}, refused: keyword };
    args[keyword] = value ?? true;
  }
  return { args };
}
