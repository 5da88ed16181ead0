// Sends messages: one attempt each, with the truth of how it went.
import type { Delivery, NotifierTarget, Outgoing } from '../core/notifications';

export type NotifierType = 'email' | 'slack' | 'discord' | 'webhook' | 'pagerduty';

export interface Sender {
  /** Never throws for what the receiver did. */
  send(type: NotifierType, target: NotifierTarget, message: Outgoing): Promise<Delivery>;
  close(): void;
}
