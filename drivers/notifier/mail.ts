// Mail of notifiers: through the queue of the platform, or where that is off, the server of the operator (SMTP_URL).
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { createTransport } from 'nodemailer';
import type { Delivery, Outgoing } from '../../core/notifications';
import type { PlatformMail } from '../../core/mail/platform_mail';
import { messageTextOf } from './text';

export interface Mail {
  send(addresses: readonly string[], message: Outgoing): Promise<Delivery>;
  close(): void;
}

const TIMEOUT_MS = 15_000;

/** Takes a message into the queue of the platform; null where the platform has none. */
export type QueueMail = ((id: string, addresses: readonly string[], mail: PlatformMail) => Promise<void>) | null;

export function openMailSender(options: {
  smtpUrl: string | null;
  smtpFrom: string;
  caFile: string | null;
  queue: QueueMail;
}): Mail {
  const { smtpUrl, smtpFrom, caFile, queue } = options;
  // The queue tries for days, and signs; the server of the operator comes behind it.
  if (queue || smtpUrl === null) return queued(queue);
  const transport = createTransport({
    url: smtpUrl,
    ...{ connectionTimeout: TIMEOUT_MS, greetingTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS },
    ...(caFile && { tls: { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } }),
    // Text and links are ours: nothing is ever read from a file or an address.
    ...{ disableFileAccess: true, disableUrlAccess: true },
  });
  return {
    async send(addresses, message) {
      try {
        await transport.sendMail(mailOf(addresses, smtpFrom, message));
        return { delivered: true, status_code: 250, error: null, retry: null };
      } catch (error) {
        return failureOf(error as Error & { code?: string; responseCode?: number });
      }
    },
    close: () => transport.close(),
  };
}

function queued(queue: QueueMail): Mail {
  return {
    async send(addresses, message) {
      if (!queue) return UNSET;
      const { title, lines } = messageTextOf(message);
      const said = lines.map(([name, value]) => `${name}: ${value}`);
      await queue(message.id, addresses, { subject: title, lines: said, link: message.link });
      return { delivered: true, status_code: 250, error: null, retry: null };
    },
    close: () => undefined,
  };
}

const UNSET: Delivery = {
  delivered: false,
  status_code: null,
  error: 'This installation sends no mail: SMTP_PORTS is 0, and SMTP_URL is not set.',
  retry: null,
};

function mailOf(addresses: readonly string[], from: string, message: Outgoing): object {
  const { title, lines } = messageTextOf(message);
  const host = /@([^>\s]+)>?\s*$/.exec(from)?.[1] ?? 'localhost';
  return {
    ...{ from, to: addresses.map((address) => ({ name: '', address })), subject: title },
    text: `${title}\n\n${lines.map(([name, value]) => `${name}: ${value}`).join('\n')}\n`,
    // The same in every attempt.
    messageId: `<${message.id}@${host}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
    date: new Date(message.at),
  };
}

/** The server's words may repeat what was sent to it, such as the name of the account; its status says enough. */
function failureOf({ code, responseCode }: Error & { code?: string; responseCode?: number }): Delivery {
  const refused = responseCode !== undefined && responseCode >= 500;
  const what = responseCode === undefined ? `could not be reached (${code ?? 'unknown'})` : `answered ${responseCode}`;
  const retry = refused && code !== 'EAUTH' ? 'never' : null;
  return { delivered: false, status_code: responseCode ?? null, error: `The mail server ${what}.`, retry };
}
