import { buildCore } from '../resolvers';
import type { Command } from './command';

export const commands: Command[] = [
  {
    name: 'routes',
    summary: 'List the operations of the REST face. Needs no database.',
    async run() {
      const { operations } = buildCore().table;
      return { rows: operations.map(({ method, path, id, field, group }) => ({ method, path, operation: id, scope: field.scope, group })) };
    },
  },
];
