import type { Delivery, NotifierTarget, Outgoing } from '../../core/notifications';
import type { Outbound } from '../../core/outbound';
import { guarded } from '../../core/outbound/client';
import type { Answered } from '../../core/outbound/exchange';
import { OutboundError } from '../../core/outbound/trace';
import type { NotifierType, Sender } from '../notifier';
import { discordRequest, pagerdutyRequest, slackRequest, type ChatRequest } from './chat';
import { openMailSender, type Mail, type QueueMail } from './mail';
import { webhookRequest } from './webhook';

interface SenderOptions {
  outbound: Outbound;
  pagerdutyUrl: string;
  /** SMTP_URL; null: no mail. */
  smtpUrl: string | null;
  smtpFrom: string;
  /** Where mail goes without SMTP_URL. */
  queue: QueueMail;
  caFile: string | null;
  /** Of one attempt; default 15. */
  timeoutSeconds?: number;
}

const TIMEOUT_SECONDS = 15;
const ANSWER_BYTES_MAX = 4096;
/** What a service says of its errors, in one line. */
const DETAIL_CHARACTERS = 200;

export function openSender(options: SenderOptions): Sender {
  let mail: Mail | null = null;
  return {
    send(type, target, message) {
      if (type === 'email') return (mail ??= openMailSender(options)).send(target.addresses ?? [], message);
      const request = requestOf(type, target, message, options);
      return post(options.outbound, request, options.timeoutSeconds ?? TIMEOUT_SECONDS);
    },
    close: () => mail?.close(),
  };
}

function requestOf(
  type: Exclude<NotifierType, 'email'>,
  target: NotifierTarget,
  message: Outgoing,
  { pagerdutyUrl }: SenderOptions,
): ChatRequest {
  if (type === 'slack') return slackRequest(target.webhook_url as string, message);
  if (type === 'discord') return discordRequest(target.webhook_url as string, message);
  if (type === 'pagerduty') return pagerdutyRequest(pagerdutyUrl, target.routing_key as string, message);
  return webhookRequest(target, message, new Date());
}

async function post(
  outbound: Outbound,
  { url, headers, body, isFinal }: ChatRequest,
  seconds: number,
): Promise<Delivery> {
  const asked = {
    ...{ url: new URL(url), method: 'POST', body: Buffer.from(body), bodyBytesMax: ANSWER_BYTES_MAX },
    headers: [
      { name: 'Content-Type', value: 'application/json' },
      { name: 'User-Agent', value: 'platform-api-notifier/1' },
      ...headers,
    ],
  };
  try {
    return deliveryOf(await guarded(outbound, asked, seconds * 1000), isFinal);
  } catch (error) {
    if (error instanceof OutboundError) return failed(error.message, null);
    throw error;
  }
}

function deliveryOf({ status, headers, body }: Answered, isFinal: (status: number) => boolean): Delivery {
  if (status >= 200 && status < 300) return { delivered: true, status_code: status, error: null, retry: null };
  const said = body
    .toString('utf8')
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
    .slice(0, DETAIL_CHARACTERS);
  const error = `The receiver answered with the status ${status}${said ? `: ${said}` : '.'}`;
  return {
    delivered: false,
    status_code: status,
    error,
    retry: isFinal(status) ? 'never' : retryAfter(headers['retry-after']),
  };
}

const RETRY_AFTER_MAX_SECONDS = 3600;

/** Milliseconds, as a service asks for them. */
function retryAfter(header: string | undefined): number | null {
  const seconds = Number(header ?? NaN);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, RETRY_AFTER_MAX_SECONDS) * 1000 : null;
}

function failed(error: string, status_code: number | null): Delivery {
  return { delivered: false, status_code, error, retry: null };
}
