// Webhooks signed according to Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks
import { createHmac } from 'node:crypto';
import type { ActivityMessage, NotifierTarget, Outgoing } from '../../core/notifications';
import type { ChatRequest } from './chat';

const GONE = 410;

export function webhookRequest({ url, secret }: NotifierTarget, message: Outgoing, now: Date): ChatRequest {
  const body = JSON.stringify(payloadOf(message));
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const headers = [
    { name: 'webhook-id', value: message.id },
    { name: 'webhook-timestamp', value: timestamp },
    ...(secret ? [{ name: 'webhook-signature', value: signature(secret, message.id, timestamp, body) }] : []),
  ];
  // Only 410 is permanent; a 404 may be due to a deployment of the receiver.
  return { url: url as string, headers, body, isFinal: (status) => status === GONE };
}

/**
 * `v1,` and the HMAC-SHA256 of id, time and body. A secret with the prefix `whsec_` is base64; any other is the key
 * itself.
 */
function signature(secret: string, id: string, timestamp: string, body: string): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

function payloadOf({ event, at, project, notifier, data, link }: Outgoing): object {
  if (event === 'activity') {
    const entry = link === null ? data : { ...data, link };
    return { type: (data as ActivityMessage).action, timestamp: at, data: entry };
  }
  if (event === 'notifier.test') return { type: event, timestamp: at, data: { project, notifier } };
  return { type: event, timestamp: at, data: { project, ...data, link } };
}
