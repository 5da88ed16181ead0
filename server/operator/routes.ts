import { createRequire } from 'node:module';
import type * as OfResolvers from '../../resolvers';
import type { Command } from './command';

const load = createRequire(__filename);

export const commands: Command[] = [
  {
    name: 'routes',
    summary: 'List the operations of the REST face. Needs no database.',
    async run() {
      const { buildCore } = load('../../resolvers') as typeof OfResolvers;
      const { operations } = buildCore().table;
      return {
        rows: operations.map(({ method, path, id, field, group }) => ({
          method,
          path,
          operation: id,
          scope: field.scope,
          group,
        })),
      };
    },
  },
];
