// Sends messages: one attempt each, with its outcome.
import type { Delivery, NotifierTarget, Outgoing } from '../core/notifications';

export type NotifierType =
  | 'email'
  | 'slack'
  | 'discord'
  | 'teams'
  | 'mattermost'
  | 'telegram'
  | 'ntfy'
  | 'gotify'
  | 'webhook'
  | 'pagerduty';

export interface Sender {
  /** Never throws for failures of the receiver. */
  send(type: NotifierType, target: NotifierTarget, message: Outgoing): Promise<Delivery>;
  close(): void;
}
