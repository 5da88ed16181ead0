import { defineStates } from '../core/states';
import { Resource } from './base';

/** One kind of process of an application: a command and how many instances of it run. `web` is the one that takes requests. */
export class Process extends Resource {
  static readonly table = 'processes';
  static readonly kind = 'process';
  static readonly idPrefix = 'prc';
  static override readonly filters = { type: 'type = ?', status: 'status = ?' };
  static override readonly sorts = ['type'];
  static override readonly states = defineStates({
    initial: ['idle'],
    transitional: ['scaling'],
    moves: {
      idle: ['scaling'],
      scaling: ['running', 'idle'],
      running: ['scaling', 'crashed'],
      crashed: ['scaling', 'running'],
    },
  });

  declare application_id: string;
  declare type: string;
  /** null = what the image or the Procfile says. */
  declare command: string | null;
  /** null = the application's. */
  declare application_type: string | null;
  /** Wanted count; `running_instances` is what there is. */
  declare instances: number;
  declare running_instances: number;
  declare status: 'idle' | 'scaling' | 'running' | 'crashed';
}
