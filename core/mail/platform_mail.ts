// Mails of the platform to people, as plain text and HTML.
import { ACCOUNT_PATHS } from './account_paths';

export interface PlatformMail {
  subject: string;
  /** Paragraphs. */
  lines: readonly string[];
  /** A code to copy, on a separate line. */
  code?: string | null;
  link?: string | null;
}

/** A mail composed after the look-up of the address, so that the response does not reveal whether the user exists. */
export interface RequestedMail {
  requested: 'password_reset';
}

const NOT_REQUESTED = 'If you did not ask for this, ignore this message: nothing changes without the link.';

export function invitationMail(parts: {
  project: string;
  inviter: string;
  role: string;
  token: string;
  days: number;
  baseUrl: string;
}): PlatformMail {
  const { project, inviter, role, token, days, baseUrl } = parts;
  return {
    subject: `Invitation to the project ${project}`,
    lines: [
      `${inviter} invites you to the project ${project} as ${role}.`,
      `To accept, follow the link within ${days} days, or use this token with acceptInvitation. ` +
        'Whoever has it can join as you.',
    ],
    code: token,
    link: linkOf(baseUrl, ACCOUNT_PATHS.invitation, token),
  };
}

export function passwordResetMail(parts: {
  name: string;
  token: string;
  minutes: number;
  baseUrl: string;
}): PlatformMail {
  const { name, token, minutes, baseUrl } = parts;
  return {
    subject: 'Set a new password',
    lines: [
      `Hello ${name}, somebody has asked to set a new password for your user at ${new URL(baseUrl).host}.`,
      `To set one, follow the link within ${minutes} minutes. It can be used once. ${NOT_REQUESTED}`,
    ],
    link: linkOf(baseUrl, ACCOUNT_PATHS.newPassword, token),
  };
}

export function passwordChangedMail({ name, baseUrl }: { name: string; baseUrl: string }): PlatformMail {
  return {
    subject: 'Your password was changed',
    lines: [
      `Hello ${name}, the password of your user at ${new URL(baseUrl).host} was changed with a link that was sent ` +
        `to this address. All sessions have ended.`,
      'If this was not you, set another password now and contact the operator of the platform.',
    ],
    link: `${baseUrl}${ACCOUNT_PATHS.resetPassword}`,
  };
}

export function emailConfirmationMail(parts: {
  name: string;
  token: string;
  hours: number;
  baseUrl: string;
}): PlatformMail {
  const { name, token, hours, baseUrl } = parts;
  return {
    subject: 'Confirm your e-mail address',
    lines: [
      `Hello ${name}, please confirm that this is the e-mail address of your user at ${new URL(baseUrl).host}.`,
      `Follow the link within ${hours} hours. It can be used once. ${NOT_REQUESTED}`,
    ],
    link: linkOf(baseUrl, ACCOUNT_PATHS.confirmEmail, token),
  };
}

/** @param parts.key name of the key; null for a person in the dashboard. `name`: what the call is about */
export function approvalMail(parts: {
  who: string;
  key: string | null;
  project: string;
  summary: string;
  name: string | null;
  hours: number;
  link: string;
}): PlatformMail {
  const { who, key, project, summary, name, hours, link } = parts;
  const what = name === null ? summary : `${summary}: ${name}`;
  const whose = key === null ? who : `${who}, with the key ${key},`;
  return {
    subject: `A call in the project ${project} waits for your approval`,
    lines: [
      `${whose} wants to make a call that destroys in the project ${project}. ${what}.`,
      `The page shows the call and what it would do; opening it decides nothing. It waits for ${hours} hours.`,
    ],
    link,
  };
}

export function pausedKeyMail(parts: {
  name: string;
  prefix: string;
  project: string | null;
  max: number;
  link: string;
}): PlatformMail {
  const { name, prefix, project, max, link } = parts;
  const where = project === null ? '' : ` in the project ${project}`;
  return {
    subject: `The API key ${name} was paused`,
    lines: [
      `The API key ${name} (${prefix}…) made more than ${max} calls that destroy within a minute${where}, so the ` +
        'platform refuses it now.',
      'If that is right, let it go on in the list of keys. If not, revoke it there, and see in the activity what it ' +
        'did.',
    ],
    link,
  };
}

export function plainTextOf({ lines, code, link }: PlatformMail): string {
  return `${[...lines, ...(code ? [`    ${code}`] : []), ...(link ? [link] : [])].join('\n\n')}\n`;
}

export function htmlOf({ lines, code, link }: PlatformMail): string {
  const parts = lines.map((line) => `<p>${escapeHtml(line)}</p>`);
  if (code) parts.push(`<p><code>${escapeHtml(code)}</code></p>`);
  if (link) parts.push(`<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>`);
  return `<!doctype html><html><body>${parts.join('')}</body></html>`;
}

function linkOf(baseUrl: string, path: string, token: string): string {
  return `${baseUrl}${path}?token=${encodeURIComponent(token)}`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
