/** @tier heavy @quarter 4 @covers docs/DEPLOYING.md jobs/deployments drivers/builder */
// docs/DEPLOYING.md is true: its blocks run as they stand against what npm start starts.
import { needs } from '../support/runner/programs';
import { startTour, type Tour } from '../support/processes/tour';

describe('the way from nothing to a domain', () => {
  const { test: tour } = needs('bash', 'curl', 'git');
  let service: Tour | undefined;

  afterAll(() => service?.close());

  tour(
    'runs as it stands (needs bash, curl and git)',
    async () => {
      service = await startTour({ ALLOW_LOCAL_GIT: '1' });
      const outputs = await service.run('docs/DEPLOYING.md');
      const [
        ,
        ,
        first,
        folder,
        logs,
        settings,
        worker,
        ran,
        nightly,
        sync,
        scaled,
        bounds,
        bad,
        back,
        preview,
        auto,
        volume,
        maintenance,
        domain,
        cleared,
      ] = outputs;
      expect(outputs).toHaveLength(20);
      expect(first).toBe('active\nHello from version 1\n');
      expect(folder).toMatch(/"status":"ready"[^]*\}active\n/);
      expect(logs).toMatch(/Deployment 1 is active\.[^]*"message":"listening on \d+"/);
      expect(settings).toBe('/\nGREETING\nrunning\nGood morning from version 1\n');
      expect(worker).toBe('migrated\n0\nGood morning from version 2\n');
      expect(ran).toBe('0\nGood morning, migrated\n');
      expect(nightly).toMatch(/^\d{4}-\d\d-\d\dT0[01]:30:00\.000Z\nGood morning, reported\n$/);
      expect(sync).toBe('forbid\n');
      expect(scaled).toMatch(/^1\n2\n +2 "process_type":"web"\n +1 "process_type":"worker"\n$/);
      expect(bounds).toBe('3\nrunning\n');
      expect(bad).toMatch(/did not listen on PORT \d+ within 10 seconds[^]*\nGood morning from version 2\n$/);
      expect(back).toBe('active\nGood morning from version 1\n');
      expect(preview).toBe('Good morning from an idea\n');
      expect(auto).toBe('true\n');
      expect(volume).toBe('/data\n');
      expect(maintenance).toMatch(/^true\n.*under maintenance.*\n+false\n$/);
      expect(domain).toMatch(/"type":"CNAME","name":"hello\.example\.com"[^]*"type":"TXT"/);
      expect(cleared).toMatch(/HTTP status 204[^]*HTTP status 204/);
    },
    300_000,
  );
});
