// Message texts: event, start, last error, and link.
import type {
  ActivityMessage,
  AlarmMessage,
  CertificateMessage,
  IncidentMessage,
  Outgoing,
} from '../../core/notifications';

interface MessageText {
  title: string;
  /** Name and value of each line. */
  lines: [string, string][];
  /** Whether the incident is ongoing. */
  isAlert: boolean;
}

export function messageTextOf(message: Outgoing): MessageText {
  if (message.event === 'notifier.test')
    return {
      title: `Test message of the notifier ${message.notifier.name}`,
      lines: [['Project', message.project.name]],
      isAlert: false,
    };
  if (message.event === 'activity') return activityText(message);
  if (message.event === 'observer.certificate_expiring') return certificateText(message);
  if (message.event.startsWith('installation.')) return alarmText(message);
  const { observer, incident, last_error, note } = message.data as IncidentMessage;
  const isAlert = message.event !== 'observer.resolved';
  const lines: [string, string][] = [
    ['Target', observer.target],
    ['Since', incident.started_at],
    [isAlert ? 'Last error' : 'Cause', last_error ?? incident.cause],
    ...(note ? [['Note', note] as [string, string]] : []),
    ['Project', message.project.name],
    ...(message.link ? [['Details', message.link] as [string, string]] : []),
  ];
  return { title: titleOf(message.event, observer.name, incident.duration_seconds), lines, isAlert };
}

const BAD_ENDS = /\.(?:failed|missed|timed_out|crashed|paused)$/;

function activityText({ data, project, at, link }: Outgoing): MessageText {
  const { action, resource, actor } = data as ActivityMessage;
  const lines: [string, string][] = [
    [resource.type, resource.name === null ? resource.id : `${resource.name} (${resource.id})`],
    ['By', actor.name],
    ['At', at],
    ['Project', project.name],
    ...(link ? [['Details', link] as [string, string]] : []),
  ];
  return { title: `${action}: ${resource.name ?? resource.id}`, lines, isAlert: BAD_ENDS.test(action) };
}

function certificateText(message: Outgoing): MessageText {
  const { observer, certificate } = message.data as CertificateMessage;
  return {
    title: `The certificate of ${observer.name} expires ${daysText(certificate.days_left)}`,
    lines: [
      ['Target', observer.target],
      ['Expires', certificate.expires_at],
      ...(certificate.authority ? [['Of the authority', certificate.authority] as [string, string]] : []),
      ['Project', message.project.name],
    ],
    isAlert: true,
  };
}

function alarmText({ event, data, link }: Outgoing): MessageText {
  const { alarm, installation } = data as AlarmMessage;
  const isAlert = event !== 'installation.alarm_ended';
  const lines: [string, string][] = [
    ...(isAlert ? [['What to do', alarm.detail] as [string, string]] : []),
    ['Since', alarm.started_at],
    ...(alarm.ended_at ? [['Until', alarm.ended_at] as [string, string]] : []),
    ['Installation', installation],
    ...(link ? [['Details', link] as [string, string]] : []),
  ];
  return { title: isAlert ? alarm.title : `Over: ${alarm.title}`, lines, isAlert };
}

function daysText(days: number): string {
  if (days === 0) return 'within a day';
  return days === 1 ? 'in 1 day' : `in ${days} days`;
}

function titleOf(event: Outgoing['event'], name: string, seconds: number | null): string {
  if (event === 'observer.alerting') return `${name} is alerting`;
  if (event === 'observer.reminder') return `${name} is still alerting`;
  return `${name} has recovered after ${durationText(seconds ?? 0)}`;
}

function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** At most so many UTF-16 code units; a character is never cut in two. */
export function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

const ELLIPSIS_BYTES = 3;

/** At most so many bytes of UTF-8. */
export function cutBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const kept = Buffer.from(text).subarray(0, bytes - ELLIPSIS_BYTES);
  // As a stream, so that a character that is incomplete at the end is left out.
  return `${new TextDecoder().decode(kept, { stream: true })}…`;
}
