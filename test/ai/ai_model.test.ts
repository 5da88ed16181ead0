// The catalog of AI models with the changes of the operator.
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadAiModels } from '../../core/catalog/ai_models';
import { startService, type Answer, type TestService } from '../support/service';

const changes = path.join(tmpdir(), `ai-models-${process.pid}.json`);

let service: TestService;

beforeAll(async () => {
  const own = { id: 'house-model', name: 'House model', provider: 'house', type: 'chat', context_tokens: 8192 };
  const cheaper = { id: 'gpt-4o-mini', input_price_per_million: '0.2', retires_at: '2030-01-01T00:00:00Z' };
  writeFileSync(changes, JSON.stringify({ models: [own, cheaper, { id: 'gpt-4o', hidden: true }] }));
  service = await startService({ settings: { AI_MODELS_FILE: changes } });
});

afterAll(() => service?.close());

const get = async (place: string): Promise<Answer> => service.call('GET', place);

describe('listAiModels and getAiModel', () => {
  it('has models with prices as decimals, and the changes of the operator', async () => {
    const { body } = await get('/v2/ai_models?type=embedding&provider=openai');
    expect(body.data.map(({ id }: { id: string }) => id)).toContain('text-embedding-3-small');
    expect((await get('/v2/ai_models/house-model')).body).toEqual({
      id: 'house-model',
      name: 'House model',
      provider: 'house',
      type: 'chat',
      context_tokens: 8192,
      max_output_tokens: null,
      capabilities: [],
      input_price_per_million: null,
      output_price_per_million: null,
      currency: 'USD',
      status: 'available',
      retires_at: null,
    });
    const { body: mini } = await get('/v2/ai_models/gpt-4o-mini');
    expect(mini).toMatchObject({
      input_price_per_million: '0.2',
      output_price_per_million: '0.6',
      capabilities: ['streaming', 'tools', 'vision'],
      retires_at: '2030-01-01T00:00:00.000Z',
    });
    expect((await get('/v2/ai_models/gpt-4o')).body.code).toBe('not_found');
    expect((await get('/v2/ai_models?status=deprecated')).body.data.length).toBeGreaterThan(0);
  });

  it('can be only what the operator lists', () => {
    writeFileSync(`${changes}.only`, JSON.stringify({ only_listed: true, models: [{ id: 'gpt-4o-mini' }] }));
    expect(loadAiModels(`${changes}.only`).map(({ id }) => id)).toEqual(['gpt-4o-mini']);
  });

  it.each([
    ['{', "can't read"],
    ['[]', 'needs "models"'],
    ['{"models": [{"id": "new"}]}', 'model new: name is missing or not valid'],
    ['{"models": [{"id": "gpt-4o", "input_price_per_million": 2.5}]}', 'input_price_per_million'],
    ['{"models": [{"id": "gpt-4o", "colour": "red"}]}', 'has no field colour'],
  ])('a mistake in the file stops the start: %s', (text, message) => {
    writeFileSync(`${changes}.wrong`, text);
    expect(() => loadAiModels(`${changes}.wrong`)).toThrow(message);
  });
});
