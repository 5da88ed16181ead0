// Messages of notifiers: content, target and delivery result. Plain values.
import type { IncidentStatus } from '../schema/types';

export type IncidentEvent = 'observer.alerting' | 'observer.reminder' | 'observer.resolved';
export type AlarmEvent = 'installation.alarm_started' | 'installation.alarm_ended';
export type NotificationEvent =
  | IncidentEvent
  | AlarmEvent
  | 'observer.certificate_expiring'
  | 'notifier.test'
  | 'activity';

/** Content of an incident message. Self-contained: the observer may be deleted before it is sent. */
export interface IncidentMessage {
  observer: { id: string; name: string; type: string; target: string };
  incident: {
    id: string;
    status: IncidentStatus;
    cause: string;
    started_at: string;
    resolved_at: string | null;
    duration_seconds: number | null;
  };
  /** Error of the last failed check. */
  last_error: string | null;
  /** Why it was resolved without a successful check. */
  note: string | null;
}

/** The certificate of a target expires soon. */
export interface CertificateMessage {
  observer: IncidentMessage['observer'];
  /** `authority`: name of the one whose certificate ends first in the chain; null: that of the target does. */
  certificate: { expires_at: string; days_left: number; authority: string | null };
}

/** An alarm of the installation. */
export interface AlarmMessage {
  alarm: {
    id: string;
    name: string;
    subject: string;
    /** What is wrong, in a few words, and what to do, in a sentence. */
    title: string;
    detail: string;
    started_at: string;
    ended_at: string | null;
  };
  /** Address of the installation. */
  installation: string;
}

/** An entry of the activity log, as in its list. */
export interface ActivityMessage {
  id: string;
  action: string;
  resource: { type: string; id: string; name: string | null };
  actor: { name: string };
  [member: string]: unknown;
}

export interface Outgoing {
  /** The same in every attempt, so that receivers can detect duplicates. */
  id: string;
  event: NotificationEvent;
  /** Time of the event. */
  at: string;
  project: { id: string; name: string };
  notifier: { id: string; name: string };
  data: IncidentMessage | CertificateMessage | AlarmMessage | ActivityMessage | Record<string, never>;
  /** Link to details; null where there are none. */
  link: string | null;
}

/** Target of a notifier. Fields of other types are absent. */
export interface NotifierTarget {
  addresses?: string[];
  webhook_url?: string;
  url?: string;
  secret?: string | null;
  events?: string[];
  routing_key?: string;
  token?: string | null;
  chat_id?: string;
  topic?: string;
}

export interface Delivery {
  delivered: boolean;
  status_code: number | null;
  /** Message for users. */
  error: string | null;
  /** Retry of a failed delivery: delay, null = default delay, 'never'. */
  retry: number | null | 'never';
}

/** Delays between attempts: a day in total, as Standard Webhooks requires. */
export const RETRY_SECONDS = [5, 30, 120, 300, 900, 1800, 3600, 7200, 14_400, 21_600, 36_000];
