// Mattermost: incoming webhooks, whose texts are Markdown in which names mention people.
import type { Outgoing } from '../../core/notifications';
import { GREEN, isRefusal, RED, type ChatRequest } from './chat';
import { cut, messageTextOf } from './text';

/** Of 16,383, with room for what escaping adds. */
const VALUE_CHARACTERS = 2000;
const TITLE_CHARACTERS = 250;
const HEX = 16;

/** https://developers.mattermost.com/integrate/webhooks/incoming/ */
export function mattermostRequest(url: string, message: Outgoing): ChatRequest {
  const { title, lines, isAlert } = messageTextOf(message);
  const attachment = {
    fallback: cut(title, TITLE_CHARACTERS),
    color: `#${(isAlert ? RED : GREEN).toString(HEX).padStart(6, '0')}`,
    text: `**${escaped(cut(title, TITLE_CHARACTERS))}**`,
    fields: lines.map(([name, value]) => ({ short: false, title: name, value: escaped(cut(value, VALUE_CHARACTERS)) })),
  };
  const body = { attachments: [attachment], props: { disable_mentions: true } };
  return { url, headers: [], body: JSON.stringify(body), isFinal: isRefusal };
}

const PLAIN_URL = /^https?:\/\/[\w.:/?&=%+-]+$/;
const NO_SPACE = '\u200b';

/** Neither formatted, nor a link with another text, nor a mention such as `@channel` or `<!channel>`. */
function escaped(text: string): string {
  if (PLAIN_URL.test(text)) return text;
  return text
    .replace(/[\r\n]+/g, ' ')
    .replace(/[\\`*_~|[\]#>]/g, '\\$&')
    .replace(/[@<]/g, `$&${NO_SPACE}`);
}
