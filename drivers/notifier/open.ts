import type { Delivery, NotifierTarget, Outgoing } from '../../core/notifications';
import type { Outbound } from '../../core/outbound';
import { guarded } from '../../core/outbound/client';
import type { Answered } from '../../core/outbound/exchange';
import { OutboundError } from '../../core/outbound/trace';
import type { NotifierType, Sender } from '../notifier';
import { discordRequest, pagerdutyRequest, slackRequest, type ChatRequest } from './chat';
import { openMailSender, type Mail, type QueueMail } from './mail';
import { mattermostRequest } from './mattermost';
import { gotifyRequest, ntfyRequest } from './push';
import { teamsRequest } from './teams';
import { telegramRequest } from './telegram';
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
      const request = REQUESTS[type](target, message, options);
      return post(options.outbound, request, options.timeoutSeconds ?? TIMEOUT_SECONDS);
    },
    close: () => mail?.close(),
  };
}

type RequestOf = (target: NotifierTarget, message: Outgoing, options: SenderOptions) => ChatRequest;

const REQUESTS: Record<Exclude<NotifierType, 'email'>, RequestOf> = {
  slack: ({ webhook_url }, message) => slackRequest(webhook_url as string, message),
  discord: ({ webhook_url }, message) => discordRequest(webhook_url as string, message),
  teams: ({ webhook_url }, message) => teamsRequest(webhook_url as string, message),
  mattermost: ({ webhook_url }, message) => mattermostRequest(webhook_url as string, message),
  telegram: telegramRequest,
  ntfy: ntfyRequest,
  gotify: gotifyRequest,
  pagerduty: ({ routing_key }, message, { pagerdutyUrl }) =>
    pagerdutyRequest(pagerdutyUrl, routing_key as string, message),
  webhook: (target, message) => webhookRequest(target, message, new Date()),
};

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
  const text = body.toString('utf8');
  const answer = parsed(text);
  const said = (DETAILS.map((name) => answer[name]).find((value) => typeof value === 'string') ?? text)
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
    .slice(0, DETAIL_CHARACTERS);
  const moved = answer.parameters?.migrate_to_chat_id;
  const newId = moved ? ` (its id is now ${String(moved)})` : '';
  return {
    delivered: false,
    status_code: status,
    error: `The receiver answered with the status ${status}${said ? `: ${said}` : '.'}${newId}`,
    retry: isFinal(status) ? 'never' : retryAfter(headers['retry-after'] ?? answer.parameters?.retry_after),
  };
}

/** Where services put the sentence of an error: Gotify, Telegram, Discord and Mattermost, ntfy. */
const DETAILS = ['errorDescription', 'description', 'message', 'error'] as const;

/** `parameters` are Telegram's: the pause that it asks for, and where a group is since it has become a larger one. */
type Said = { [name in (typeof DETAILS)[number]]?: string } & {
  parameters?: { retry_after?: number; migrate_to_chat_id?: number } | null;
};

function parsed(text: string): Said {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

const RETRY_AFTER_MAX_SECONDS = 3600;

/** Milliseconds, as a service asks for them. */
function retryAfter(asked: string | number | undefined): number | null {
  const seconds = Number(asked ?? NaN);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, RETRY_AFTER_MAX_SECONDS) * 1000 : null;
}

function failed(error: string, status_code: number | null): Delivery {
  return { delivered: false, status_code, error, retry: null };
}
