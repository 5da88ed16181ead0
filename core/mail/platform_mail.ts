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
