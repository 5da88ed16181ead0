// Servers of push messages: ntfy and Gotify.
import type { NotifierTarget, Outgoing } from '../../core/notifications';
import { isRefusal, type ChatRequest } from './chat';
import { cut, cutBytes, messageTextOf } from './text';

const TITLE_CHARACTERS = 250;
/** What is longer than 4,096 bytes becomes a file, which many servers refuse. */
const NTFY_BYTES = 4000;
/** The request has twice as many, with the title, the link and what JSON adds to quotes and line ends. */
const NTFY_ENCODED_BYTES = 6000;
const NTFY_TITLE_BYTES = 500;
const [NTFY_HIGH, NTFY_DEFAULT] = [4, 3];
const GOTIFY_CHARACTERS = 10_000;
/** From 8 on, the app shows a message above all others. */
const [GOTIFY_HIGH, GOTIFY_DEFAULT] = [8, 5];

/** As JSON, since headers cannot have every character: https://docs.ntfy.sh/publish/#publish-as-json */
export function ntfyRequest(target: NotifierTarget, message: Outgoing): ChatRequest {
  const { url = 'https://ntfy.sh', topic, token } = target;
  const { title, lines, isAlert } = messageTextOf(message);
  const body = {
    ...{ topic, title: cutBytes(title, NTFY_TITLE_BYTES), message: ntfyText(plainText(lines) || title) },
    priority: isAlert ? NTFY_HIGH : NTFY_DEFAULT,
    tags: [isAlert ? 'rotating_light' : 'white_check_mark'],
    ...(message.link && { click: message.link }),
  };
  const headers = token ? [{ name: 'Authorization', value: `Bearer ${token}` }] : [];
  return { url: withoutSlash(url), headers, body: JSON.stringify(body), isFinal: isRefusal };
}

function ntfyText(text: string): string {
  for (let bytes = NTFY_BYTES; ; bytes = Math.floor(bytes / 2)) {
    const part = cutBytes(text, bytes);
    if (Buffer.byteLength(JSON.stringify(part)) <= NTFY_ENCODED_BYTES) return part;
  }
}

/** https://gotify.net/api-docs#/message/createMessage */
export function gotifyRequest({ url, token }: NotifierTarget, message: Outgoing): ChatRequest {
  const { title, lines, isAlert } = messageTextOf(message);
  const body = {
    ...{ title: cut(title, TITLE_CHARACTERS), message: cut(plainText(lines) || title, GOTIFY_CHARACTERS) },
    priority: isAlert ? GOTIFY_HIGH : GOTIFY_DEFAULT,
    extras: {
      'client::display': { contentType: 'text/plain' },
      ...(message.link && { 'client::notification': { click: { url: message.link } } }),
    },
  };
  const headers = [{ name: 'X-Gotify-Key', value: String(token) }];
  return { url: `${withoutSlash(url as string)}/message`, headers, body: JSON.stringify(body), isFinal: isRefusal };
}

const plainText = (lines: [string, string][]): string => lines.map(([name, value]) => `${name}: ${value}`).join('\n');
const withoutSlash = (url: string): string => url.replace(/\/+$/, '');
