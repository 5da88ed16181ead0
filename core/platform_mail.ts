// What the platform itself writes to people: plain words, as text and as HTML.

export interface PlatformMail {
  subject: string;
  /** Paragraphs. */
  lines: readonly string[];
  /** Something to copy, on a line of its own. */
  code?: string | null;
  link?: string | null;
}

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
      `To accept, use this token with acceptInvitation within ${days} days. Whoever has it can join as you.`,
    ],
    code: token,
    link: `${baseUrl}/graphql`,
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

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
