// Presets that are images: the operator's file adds them to the catalog, and an application of any project runs them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { presetsWith } from '../../core/catalog/presets';
import { configuredApplication } from '../support/deployments/deploy';
import { base, describeImages, imageName, registry, service, setUpImages } from '../support/builds/image_cases';
import { pushImage, siteLayer } from '../support/builds/images';

const directory = mkdtempSync(path.join(os.tmpdir(), 'presets-'));
const file = path.join(directory, 'presets.json');
const wiki = {
  id: 'wiki',
  name: 'Wiki',
  description: 'A wiki of the house.',
  category: 'web',
  image: 'example.com/wiki:3',
};

afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('the file of presets', () => {
  let count = 0;
  const read = (content: unknown): ReturnType<typeof presetsWith> => {
    const one = path.join(directory, `${(count += 1)}.json`);
    writeFileSync(one, typeof content === 'string' ? content : JSON.stringify(content));
    return presetsWith(one);
  };

  test('adds images to what ships, replaces, or stands alone', () => {
    const ids = (presets: ReturnType<typeof presetsWith>): string[] => presets.map(({ id }) => id);
    expect(ids(read({ presets: [wiki] }))).toEqual([...ids(presetsWith(null)), 'wiki']);
    expect(ids(read({ only_listed: true, presets: [wiki] }))).toEqual(['wiki']);
    const replaced = read({ presets: [{ ...wiki, id: 'node-web' }] }).filter(({ id }) => id === 'node-web');
    expect(replaced).toMatchObject([{ template: null, image: wiki.image, application_type: 's-512mb', processes: [] }]);
  });

  test.each([
    ['no JSON', '{', /can't read .*PRESETS_FILE/],
    ['no list', { presets: {} }, /needs "presets"/],
    ['no image', { presets: [{ ...wiki, image: undefined }] }, /preset wiki: image is missing or not valid/],
    ['an image that is none', { presets: [{ ...wiki, image: 'Not An Image' }] }, /preset wiki: image/],
    ['an unknown field', { presets: [{ ...wiki, colour: 'red' }] }, /preset wiki has no field colour/],
    ['a variable without text', { presets: [{ ...wiki, variables: [{ key: 'A' }] }] }, /preset wiki: variables/],
    ['two of one id', { presets: [wiki, wiki] }, /two presets wiki/],
  ])('with %s ends the start', (_, content, message) => expect(() => read(content)).toThrow(message));
});

describeImages('applications from presets that are images', () => {
  setUpImages((port) => {
    const image = `localhost:${port}/acme/wiki:3`;
    const variables = [{ key: 'TITLE', description: 'Name of the wiki.', default: 'Our wiki' }];
    writeFileSync(file, JSON.stringify({ presets: [{ ...wiki, image, variables }] }));
    return { PRESETS_FILE: file };
  });

  test('a preset is listed, deployed by another project than that of its registry, which it keeps', async () => {
    await pushImage(registry, 'acme/wiki', '3', {
      layers: [base, await siteLayer({ 'index.html': '' })],
      config: {
        ...{ Cmd: ['/bin/sh', '-c', 'echo "$TITLE" > /www/index.html; exec busybox httpd -f -p "$PORT" -h /www'] },
        Env: ['PATH=/bin'],
      },
    });
    const image = imageName('wiki:3');
    const { data } = (await service.call('GET', '/v2/presets?limit=100')).body;
    expect(data.find(({ id }: { id: string }) => id === 'wiki')).toMatchObject({
      image,
      application_type: 's-512mb',
      requires_engine: null,
    });

    const other = await service.newProject({ stranger: true });
    const call: typeof service.call = (method, place, options) =>
      service.call(method, place, { ...options, project: other.id, key: other.key });
    const made = await call('POST', '/v2/applications', { body: { name: 'notes', preset: 'wiki' } });
    expect([made.status, made.body.preset, made.body.source]).toEqual([
      201,
      'wiki',
      expect.objectContaining({ type: 'image', image }),
    ]);
    const application = await configuredApplication({ ...service, call }, made.body, {});
    const { status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual(['active', null]);
    expect((await application.visit()).body).toBe('Our wiki\n');

    const [{ id }] = (await service.call('GET', '/v2/registries')).body.data;
    const refused = await service.call('DELETE', `/v2/registries/${id}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'resource_in_use']);
    expect((await call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
  }, 60_000);
});
