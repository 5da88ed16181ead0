// Microsoft Teams: a workflow that posts what its webhook receives to a channel or chat.
import type { Outgoing } from '../../core/notifications';
import { isRefusal, type ChatRequest } from './chat';
import { cutBytes, messageTextOf } from './text';

// 28 KB are the most that Teams takes of a message.
const TITLE_BYTES = 1_000;
const LINE_BYTES = 2_000;
const LINES = 10;

/**
 * Adaptive Card in the form that the template "Post to a channel when a webhook request is received" expects:
 * https://learn.microsoft.com/connectors/teams/#microsoft-teams-webhook
 */
export function teamsRequest(url: string, message: Outgoing): ChatRequest {
  const { title, lines, isAlert } = messageTextOf(message);
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    // Where the card cannot be shown, such as in a preview.
    fallbackText: cutBytes(title, TITLE_BYTES),
    body: [
      textOf([
        { ...run(cutBytes(title, TITLE_BYTES), 'Bolder'), size: 'Large', color: isAlert ? 'Attention' : 'Good' },
      ]),
      ...lines
        .filter(([, value]) => value !== message.link)
        .slice(0, LINES)
        .map(([name, value]) => textOf([run(`${name}: `, 'Bolder'), run(cutBytes(value, LINE_BYTES), 'Default')])),
    ],
    ...(message.link && { actions: [{ type: 'Action.OpenUrl', title: 'Details', url: message.link }] }),
  };
  const attachment = { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content };
  return { url, headers: [], body: JSON.stringify({ type: 'message', attachments: [attachment] }), isFinal: isRefusal };
}

/** Unlike a TextBlock, it has no Markdown: a name of a tenant cannot become a link. */
const textOf = (inlines: object[]): object => ({ type: 'RichTextBlock', inlines });
const run = (text: string, weight: 'Bolder' | 'Default'): object => ({ type: 'TextRun', text, weight });
