// Requests in the format documented by each service.
import type { AlarmMessage, CertificateMessage, IncidentMessage, Outgoing } from '../../core/notifications';
import { cut, messageTextOf } from './text';

export interface ChatRequest {
  url: string;
  headers: { name: string; value: string }[];
  body: string;
  /** Statuses for which a retry would fail too. */
  isFinal(status: number): boolean;
}

/** The address is wrong or revoked, or the message is rejected; rate limits are temporary. */
export const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;

/** Incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
export function slackRequest(url: string, message: Outgoing): ChatRequest {
  const { title, lines } = messageTextOf(message);
  const text = lines.map(([name, value]) => `*${name}:* ${escapeSlack(value)}`).join('\n');
  const blocks = [
    // A header has plain text of 150 characters at most.
    { type: 'header', text: { type: 'plain_text', text: cut(title, 150) } },
    { type: 'section', text: { type: 'mrkdwn', text: cut(text, 3000) } },
  ];
  return { url, headers: [], body: JSON.stringify({ text: escapeSlack(title), blocks }), isFinal: isRefusal };
}

function escapeSlack(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

export const [RED, GREEN] = [0xd92d20, 0x12b76a];

/** Execute webhook: https://discord.com/developers/docs/resources/webhook#execute-webhook */
export function discordRequest(url: string, message: Outgoing): ChatRequest {
  const { title, lines, isAlert } = messageTextOf(message);
  const fields = lines.map(([name, value]) => ({ name, value: cut(value, 1024) }));
  const embed = { title: cut(title, 256), color: isAlert ? RED : GREEN, timestamp: message.at, fields };
  // Observer names must not trigger mentions.
  const body = { content: cut(title, 2000), embeds: [embed], allowed_mentions: { parse: [] } };
  return { url, headers: [], body: JSON.stringify(body), isFinal: isRefusal };
}

const ENDS = new Set<Outgoing['event']>(['observer.resolved', 'installation.alarm_ended']);

/** Events API v2: https://developer.pagerduty.com/docs/send-alert-event */
export function pagerdutyRequest(url: string, routing_key: string, message: Outgoing): ChatRequest {
  const { title, lines, isAlert } = messageTextOf(message);
  const { observer, incident, alarm, installation } = message.data as Partial<
    IncidentMessage & CertificateMessage & AlarmMessage
  >;
  const action = ENDS.has(message.event) ? 'resolve' : 'trigger';
  const payload = {
    summary: cut(title, 1024),
    source: observer?.target ?? installation ?? message.project.name,
    severity: incident ? 'critical' : observer || isAlert ? 'warning' : 'info',
    timestamp: message.at,
    custom_details: Object.fromEntries(lines),
  };
  const links = message.link
    ? [{ href: message.link, text: incident ? 'Incidents of the observer' : observer ? 'The observer' : 'Details' }]
    : [];
  const body = {
    routing_key,
    event_action: action,
    dedup_key: incident?.id ?? alarm?.id ?? message.id,
    payload,
    links,
  };
  return { url, headers: [], body: JSON.stringify(body), isFinal: isRefusal };
}
