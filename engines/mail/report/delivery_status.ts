// Delivery status notifications (RFC 3464, RFC 6533): one group of fields for each recipient.
import type { Rejection } from '../rejection';

export interface RecipientOutcome {
  /** Delays, and what was delivered, relayed or expanded, have not failed. */
  hasFailed: boolean;
  /** Final and original recipient, in lower case; none where the report names nobody. */
  final: string | null;
  original: string | null;
  /** For example `5.1.1`; empty where unknown. */
  status: string;
  diagnostic: string;
  stage: Rejection['stage'];
}

const DIAGNOSTIC_CHARACTERS = 500;
const GROUPS_MAX = 100;
/** What Postfix and Exim say of a server that has refused something else than the recipient. */
const OTHER_STAGE = /(?:in reply to|after) (?:end of |initial )?(?:data|mail from|bdat|helo|ehlo|connection)\b/i;

/** @param notice the part for people, which alone says which command was answered */
export function outcomesOf(text: string, notice: string): RecipientOutcome[] {
  const unfolded = text.replace(/\n[ \t]+/g, ' ');
  const groups = unfolded
    .split(/\n\s*\n/)
    .map(outcomeOf)
    .filter((outcome) => outcome !== null);
  return groups.slice(0, GROUPS_MAX).map((outcome, _, all) => ({
    ...outcome,
    stage: OTHER_STAGE.test(`${outcome.diagnostic} ${noticeAbout(notice, outcome, all.length)}`) ? 'other' : 'rcpt',
  }));
}

/**
 * What a bounce says of one recipient; null where that has not failed. `isElsewhere`: the recipient has forwarded the
 * message to a mailbox that did not take it.
 */
export function failureFor(
  outcomes: readonly RecipientOutcome[],
  recipient: string,
): (RecipientOutcome & { isElsewhere: boolean }) | null {
  const named = outcomes.filter(({ final, original }) => [final, original].includes(recipient.toLowerCase()));
  // Servers that rewrite addresses name another one; then the report as a whole counts.
  const about = named.length ? named : outcomes.every(({ hasFailed }) => hasFailed) ? outcomes : [];
  const failure = about.find(({ hasFailed }) => hasFailed);
  if (!failure) return null;
  const isElsewhere = failure.final !== null && localPart(failure.final) !== localPart(recipient.toLowerCase());
  return { ...failure, isElsewhere };
}

function outcomeOf(group: string): RecipientOutcome | null {
  const [final, original] = [addressIn(group, 'final-recipient'), addressIn(group, 'original-recipient')];
  const status = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(fieldOf(group, 'status'))?.[0] ?? '';
  const action = fieldOf(group, 'action').toLowerCase();
  if (!action && !final) return null;
  // Some servers leave out the action.
  const hasFailed = action ? action.startsWith('fail') : status.startsWith('5');
  const code = fieldOf(group, 'diagnostic-code') || fieldOf(group, 'x-supplementary-info');
  const diagnostic = code.replace(/^[a-z][\w-]*;\s*/i, '').replace(/\p{Cc}+/gu, ' ');
  return {
    ...{ hasFailed, final, original, status, stage: 'rcpt' },
    diagnostic: diagnostic.slice(0, DIAGNOSTIC_CHARACTERS),
  };
}

/** Without the type before the semicolon. No pattern: a report comes from anybody, and may be long. */
function addressIn(group: string, name: string): string | null {
  const field = fieldOf(group, name);
  const address = field
    .slice(field.indexOf(';') + 1)
    .trim()
    .replace(/^<|>$/g, '');
  return /[<>]/.test(address) ? null : address.trim().toLowerCase() || null;
}

function fieldOf(group: string, name: string): string {
  return (new RegExp(`^${name}[ \\t]*:[ \\t]*(.*)$`, 'im').exec(group)?.[1] ?? '').trim();
}

/** The paragraph about a recipient; of a report about one recipient, all of it. */
function noticeAbout(notice: string, { final }: RecipientOutcome, count: number): string {
  const paragraphs = count === 1 ? [notice] : notice.split(/\n\s*\n/);
  const about = count === 1 ? paragraphs : paragraphs.filter((text) => final && text.toLowerCase().includes(final));
  return about.join(' ').replace(/\s+/g, ' ');
}

function localPart(address: string): string {
  const at = address.lastIndexOf('@');
  return at === -1 ? address : address.slice(0, at);
}
