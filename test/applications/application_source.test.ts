// Where applications come from: the source and its rules (docs/contract/resources.md §3).
import type { Knex } from 'knex';
import { up as renamePresets } from '../../migrations/0063_preset_sources';
import { startService, type Answer } from '../support/service';
import { created, errorsOf, git, post, service, setUpApplications } from '../support/deployments/application_cases';

setUpApplications();

describe('source', () => {
  it('takes the addresses that the operator allows', async () => {
    for (const repository_url of [
      'https://git.example.com/a.git',
      'ssh://git@git.example.com:2222/a.git',
      'git@git.example.com:acme/a.git',
      'https://8.8.8.8/a.git',
    ]) {
      expect((await created({ source: { type: 'git', repository_url, branch: 'feature/x' } })).source).toMatchObject({
        type: 'git',
        repository_url,
        branch: 'feature/x',
      });
    }
    const refused = [
      'http://git.example.com/a.git',
      'file:///srv/a.git',
      'ext::sh',
      'https://user:pw@git.example.com/a.git',
      'https://localhost/a.git',
      'https://10.0.0.1/a.git',
      'https://2130706433/a.git',
      'ssh://git@0x7f.1/a.git',
      'git@192.168.1.2:a.git',
      'https://[::1]/a.git',
      'https://[::ffff:10.0.0.1]/a.git',
      'https://169.254.169.254/a',
      'https://intranet/a.git',
    ];
    for (const repository_url of refused) {
      expect([repository_url, ...errorsOf(await post({ source: { type: 'git', repository_url } }))]).toEqual([
        repository_url,
        ['source.repository_url', 'invalid_format'],
      ]);
    }
  });

  it('takes plain, private and local addresses where the settings say so', async () => {
    const open = await startService({
      settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ALLOW_LOCAL_GIT: '1' },
    });
    try {
      const addresses = [
        'http://git.example.com/a.git',
        'file:///srv/a.git',
        'http://10.0.0.1/a.git',
        'https://localhost/a.git',
      ];
      for (const [index, repository_url] of addresses.entries()) {
        const answer = await open.call('POST', '/v2/applications', {
          body: { name: `open-${index}`, source: { type: 'git', repository_url } },
        });
        expect([repository_url, answer.status]).toEqual([repository_url, 201]);
      }
    } finally {
      await open.close();
    }
  });

  it('wants what its type needs and nothing else', async () => {
    const cases: [Record<string, unknown>, [string, string][]][] = [
      [{ type: 'git' }, [['source.repository_url', 'required']]],
      [{ type: 'image' }, [['source.image', 'required']]],
      [{ type: 'preset' }, [['source.preset', 'required']]],
      [{ ...git, image: 'shop' }, [['source.image', 'depends_on']]],
      [{ type: 'image', image: 'shop', branch: 'main' }, [['source.branch', 'depends_on']]],
      [{ type: 'git', git_integration_id: 'gin_1' }, [['source.git_integration_id', 'depends_on']]],
      [{ ...git, repository_id: '7' }, [['source.repository_id', 'depends_on']]],
      [{ type: 'svn' }, [['source.type', 'not_in_enum']]],
      [{ ...git, branch: '--upload-pack=x' }, [['source.branch', 'invalid_format']]],
      [{ ...git, branch: 'a..b' }, [['source.branch', 'invalid_format']]],
      [{ ...git, branch: 'b'.repeat(256) }, [['source.branch', 'too_long']]],
      [{ type: 'image', image: 'Not An Image' }, [['source.image', 'invalid_format']]],
      [{ type: 'image', image: 'shop', tag: '1' }, [['source.tag', 'unknown_field']]],
      [{}, [['source.type', 'required']]],
    ];
    for (const [source, wanted] of cases) expect([source, errorsOf(await post({ source }))]).toEqual([source, wanted]);
  });

  it('merges a change, lets a repository or type replace the old, and is removed by null', async () => {
    const { id } = await created({ source: { ...git, branch: 'main' } });
    const patch = async (source: unknown): Promise<Answer> =>
      service.call('PATCH', `/v2/applications/${id}`, { body: { source } });
    expect((await patch({ branch: 'next' })).body.source).toMatchObject({ ...git, branch: 'next' });
    expect((await patch({ repository_url: 'https://git.example.com/b.git' })).body.source).toMatchObject({
      repository_url: 'https://git.example.com/b.git',
      branch: 'next',
    });
    expect((await patch({ branch: null })).body.source).toMatchObject({ type: 'git', branch: null });
    expect(errorsOf(await patch({ repository_url: null }))).toEqual([['source.repository_url', 'required']]);
    expect(errorsOf(await patch({ image: 'shop' }))).toEqual([['source.image', 'depends_on']]);
    expect((await patch({ type: 'image', image: 'shop' })).body.source).toMatchObject({
      type: 'image',
      image: 'shop',
      repository_url: null,
    });
    expect((await patch(null)).body.source).toBeNull();
    expect(errorsOf(await patch({ branch: 'main' }))).toEqual([['source.type', 'required']]);
  });

  it('says preset, and takes the former name of it', async () => {
    const { id } = await created({ source: { type: 'template', template: 'static-site' } });
    const place = `/v2/applications/${id}`;
    const shown = { type: 'preset', preset: 'static-site', template: 'static-site' };
    expect((await service.call('GET', place)).body.source).toMatchObject(shown);
    const patch = async (source: unknown): Promise<unknown> =>
      (await service.call('PATCH', place, { body: { source } })).body.source?.preset;
    expect(await patch({ template: 'node-web' })).toBe('node-web');
    // Clients that send both names back change either of them.
    const both = { ...shown, preset: 'node-web', template: 'node-web' };
    expect(await patch({ ...both, template: 'static-site' })).toBe('static-site');
    expect(await patch({ ...shown, preset: 'node-web' })).toBe('node-web');
    expect(await patch(both)).toBe('node-web');
  });

  it('renames what was stored before', async () => {
    const { id } = await created({ source: null });
    const before = { type: 'template', template: 'node-web', branch: null };
    await service.sql('update applications set source = $2 where id = $1', [id, JSON.stringify(before)]);
    await renamePresets({ raw: (text: string) => service.sql(text) } as unknown as Knex);
    expect((await service.sql('select source from applications where id = $1', [id]))[0].source).toEqual({
      type: 'preset',
      preset: 'node-web',
      branch: null,
    });
  });
});
