// Telegram: messages of a bot.
import type { NotifierTarget, Outgoing } from '../../core/notifications';
import { isRefusal, type ChatRequest } from './chat';
import { cut, messageTextOf } from './text';

const SERVER = 'https://api.telegram.org';
const CHARACTERS = 4096;
const TITLE_CHARACTERS = 250;

/** Formatting is given by position, in UTF-16 code units, so no text has to be escaped. */
interface Entity {
  type: 'bold';
  offset: number;
  length: number;
}

/** sendMessage: https://core.telegram.org/bots/api#sendmessage */
export function telegramRequest({ url = SERVER, token, chat_id }: NotifierTarget, message: Outgoing): ChatRequest {
  const { title, lines } = messageTextOf(message);
  let text = cut(title, TITLE_CHARACTERS);
  const entities: Entity[] = [{ type: 'bold', offset: 0, length: text.length }];
  for (const [name, value] of lines) {
    text += '\n';
    // A name that is cut off would have an entity beyond the end, which is refused.
    if (text.length + name.length + 2 > CHARACTERS) break;
    entities.push({ type: 'bold', offset: text.length, length: name.length + 1 });
    text += `${name}: ${value}`;
  }
  return {
    url: `${url.replace(/\/+$/, '')}/bot${token}/sendMessage`,
    headers: [],
    body: JSON.stringify({
      ...{ chat_id, text: cut(text.trimEnd(), CHARACTERS), entities },
      link_preview_options: { is_disabled: true },
    }),
    isFinal: isRefusal,
  };
}
