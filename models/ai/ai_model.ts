// The catalog of AI models.
import type { AiModelRow } from '../../core/catalog/ai_models';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import type { QueryListAiModelsArgs } from '../../schema/types';
import { listing } from '../base/listing';
import type { Page } from '../base/page';

/** One page of the models that pass the filters. @throws invalid_cursor */
export function listAiModels(ctx: Context, args: QueryListAiModelsArgs): Page<AiModelRow> {
  const { type, provider, status } = args;
  const rows = ctx.catalogs
    .aiModels()
    .filter(
      (row) =>
        (type == null || row.type === type) &&
        (provider == null || row.provider === provider) &&
        (status == null || row.status === status),
    );
  const sort = args.sort ?? 'name';
  return listing(ctx, rows, { ...args, sort }, { key: 'id', filters: { of: 'aiModels', type, provider, status } });
}

/** @throws not_found */
export function getAiModel(ctx: Context, id: string): AiModelRow {
  const found = ctx.catalogs.aiModels().find((row) => row.id === id);
  if (!found) throw problem('not_found', 'The catalog has no such AI model.');
  return found;
}
