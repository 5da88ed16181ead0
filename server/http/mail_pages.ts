// Pages for developers on this machine: a list of the last messages, and the stored text of each. On the port of the
// metrics, which is reachable only from this machine. Content of messages is never rendered.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { escapeHtml } from '../../core/protocols/html';
import { mailDirectory } from '../../core/mail/mail_directory';
import type { DkimRecord } from '../../core/protocols/dkim';
import { isPublished, type EmailFindings } from '../../models/email/email_domain/instructions';
import { readMessageStart } from '../../engines/mail';
import { openMailStore, type MailStore } from '../../jobs/email/mail/store';
import { findMessage, latestMessages, type MessageWithText, type StoredMessage } from '../../models/email/mail/sink';
import type { Platform } from '../platform/platform';

export type AdminPages = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

const PAGE_SIZE = 100;
const TEXT_BYTES_MAX = 2 * 1024 * 1024;
const HEADERS = {
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

/** Answers GET /mail and /mail/{id}; false for other paths. */
export function mailPages(platform: () => Pick<Platform, 'config' | 'database' | 'fileStore' | 'log'>): AdminPages {
  return async (request, response) => {
    const [, id] = /^\/mail(?:\/(eml_[0-9a-z]{26}))?$/.exec(request.url ?? '') ?? [null];
    if (id === null || request.method !== 'GET') return false;
    const { config, database, fileStore, log } = platform();
    // DNS rebinding: a page of another site whose name resolves to this machine could read the mail.
    if (!isOwnName(request.headers.host, config.adminHost)) return false;
    if (id === undefined) sendHtml(response, listPage(await latestMessages(database, PAGE_SIZE), config.mailMode));
    else
      await sendText(response, await findMessage(database, id), () =>
        openMailStore({ directory: mailDirectory(config), fileStore, log }),
      );
    return true;
  };
}

function isOwnName(host: string | undefined, own: string): boolean {
  const name = (host ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return name === 'localhost' || name === own || isIP(name) > 0;
}

function sendHtml(response: ServerResponse, html: string): void {
  response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/html; charset=utf-8' }).end(html);
}

async function sendText(
  response: ServerResponse,
  message: MessageWithText | null,
  open: () => MailStore,
): Promise<void> {
  if (!message) return void response.writeHead(404, HEADERS).end();
  response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/plain; charset=utf-8' });
  for (const { recipient, status, last_response } of message.recipients ?? [])
    response.write(`# ${recipient}: ${status} ${last_response ?? ''}\n`);
  response.write(`# DKIM: ${dkimText(message)}\n\n`);
  try {
    response.write(await readMessageStart(await open().textOf(message), TEXT_BYTES_MAX));
  } catch {
    response.write('The text is no longer kept: the message has left.\n');
  }
  response.end();
}

/** What receivers will find of the signatures. */
function dkimText({ signing }: StoredMessage): string {
  if (!signing) return 'not signed: the sender is of no sending domain';
  const findings = signing.findings as EmailFindings | null;
  const keys = (signing.dkim_records as DkimRecord[]).filter(({ role }) => role === 'current');
  return keys
    .map((key) => {
      const found = isPublished(key, findings);
      const signs = found || key.algorithm === 'rsa';
      const record = found ? 'record found' : 'record not found';
      return `${key.selector} (${key.algorithm}) ${signs ? 'signs' : 'does not sign'}, ${record}`;
    })
    .join('; ');
}

function listPage(messages: readonly StoredMessage[], mode: string): string {
  const rows = messages.map((message) => {
    const to = (message.recipients ?? []).map(({ recipient, status }) => `${recipient} (${status})`).join(', ');
    const cells = [message.accepted_at, message.header_from, to, message.subject || '(no subject)', message.size_bytes];
    const [at, ...others] = cells.map((cell) => escapeHtml(String(cell)));
    const link = `<a href="/mail/${message.id}">${at}</a>`;
    return `<tr>${[link, ...others, escapeHtml(dkimText(message))].map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  const titles = ['Accepted', 'From', 'To', 'Subject', 'Bytes', 'DKIM'].map((title) => `<th>${title}</th>`).join('');
  return `<!doctype html><meta charset="utf-8"><title>Mail</title>
<style>body{font:14px sans-serif}td,th{text-align:left;padding:.3em .8em;border-bottom:1px solid #ccc}</style>
<h1>Mail</h1><p>Mode: ${escapeHtml(mode)}. The last ${PAGE_SIZE} messages, the newest first.</p>
<table><tr>${titles}</tr>${rows.join('\n')}</table>`;
}
