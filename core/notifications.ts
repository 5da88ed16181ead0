// Messages of notifiers: what is told, to whom, and how a delivery ends. Plain values.
import type { IncidentStatus } from '../schema/types';

export type IncidentEvent = 'observer.alerting' | 'observer.reminder' | 'observer.resolved';
export type NotificationEvent = IncidentEvent | 'observer.certificate_expiring' | 'notifier.test' | 'activity';

/** What a message about an incident says. It stands for itself: the observer may be gone when it is sent. */
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
  /** Of the last check that failed. */
  last_error: string | null;
  /** Why it was resolved without a check that passed. */
  note: string | null;
}

/** A certificate of a target that expires soon. */
export interface CertificateMessage {
  observer: IncidentMessage['observer'];
  certificate: { expires_at: string; days_left: number };
}

/** An entry of the activity log, as its list shows it. */
export interface ActivityMessage {
  id: string;
  action: string;
  [member: string]: unknown;
}

export interface Outgoing {
  /** The same in every attempt: receivers can tell a message that they have had. */
  id: string;
  event: NotificationEvent;
  /** When it happened. */
  at: string;
  project: { id: string; name: string };
  notifier: { id: string; name: string };
  data: IncidentMessage | CertificateMessage | ActivityMessage | Record<string, never>;
  /** Where to read more; null where there is nothing. */
  link: string | null;
}

/** Where a notifier sends. Fields of other types are missing. */
export interface NotifierTarget {
  addresses?: string[];
  webhook_url?: string;
  url?: string;
  secret?: string | null;
  events?: string[];
  routing_key?: string;
}

export interface Delivery {
  delivered: boolean;
  status_code: number | null;
  /** A sentence for users. */
  error: string | null;
  /** A failed one is worth another attempt: after this time, null = after the usual one, 'never'. */
  retry: number | null | 'never';
}

/** Pauses between the attempts of one message: a day in all, as Standard Webhooks asks for. */
export const RETRY_SECONDS = [5, 30, 120, 300, 900, 1800, 3600, 7200, 14_400, 21_600, 36_000];
