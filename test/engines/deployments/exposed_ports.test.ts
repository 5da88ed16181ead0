/** @tier heavy @quarter 1 @covers drivers/image drivers/network */
// EXPOSE of an image: a program that knows nothing of PORT answers at the port that its image exposes, where instances
// have networks of their own. Where they share one, the reason of the deployment says what to do.
import {
  describeImages,
  imageApplication,
  imageName,
  base,
  registry,
  setUpImages,
} from '../../support/builds/image_cases';
import { pushImage, siteLayer } from '../../support/builds/images';
import { waitFor } from '../../support/wait_for';

const asRoot = process.getuid?.() === 0 ? describeImages : describe.skip;
const WITHIN_MS = 120_000;

/** `$SVC_INSTANCE_ID` and `$PORT` are only shown. */
const command = (port: number): string[] => [
  ...['/bin/sh', '-c'],
  `echo "$SVC_INSTANCE_ID" > /www/who; echo "$PORT" > /www/port; exec busybox httpd -f -p ${port} -h /www`,
];

async function pushServer(tag: string, port: number, exposed: string[]): Promise<void> {
  await pushImage(registry, 'acme/fixed', tag, {
    layers: [base, await siteLayer({ 'index.html': tag, who: '', port: '' })],
    config: {
      ...{ Cmd: command(port), Env: ['PATH=/bin'] },
      ExposedPorts: Object.fromEntries(exposed.map((one) => [one, {}])),
    },
  });
}

asRoot('ports that images expose, on networks of projects', () => {
  setUpImages({ NETWORK: 'isolated', NETWORK_BLOCK: '10.244.0.0/24' });

  test(
    'two instances that listen on port 80 answer, and the next release takes over without a gap',
    async () => {
      await pushServer('one', 80, ['80/tcp', '53/udp']);
      await pushServer('two', 80, ['80/tcp']);
      const application = await imageApplication(imageName('fixed:one'));
      const first = await application.deploy();
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      expect(await application.visit()).toEqual({ status: 200, body: 'one' });
      expect((await application.visit('/port')).body).toBe('80\n');
      const [web] = (await application.get('/processes')).data;
      await application.post(`/processes/${web.id}/scale`, { instances: 2 });
      const seen = new Set<string>();
      await waitFor(
        'answers of two instances',
        async () => {
          const { status, body } = await application.visit('/who');
          if (status === 200) seen.add(body);
          return seen.size >= 2;
        },
        60_000,
      );
      const second = await application.deploy({ image: imageName('fixed:two') });
      expect([second.status, second.status_reason]).toEqual(['active', null]);
      await waitFor('the new release', async () => (await application.visit()).body === 'two', 60_000);
    },
    WITHIN_MS,
  );

  test(
    '`http.port` wins over what an image exposes, and helps where it exposes several ports',
    async () => {
      await pushServer('several', 8081, ['8080/tcp', '8081/tcp']);
      const application = await imageApplication(imageName('fixed:several'), { http: { port: 8081 } });
      const { status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual(['active', null]);
      expect(await application.visit()).toEqual({ status: 200, body: 'several' });
    },
    WITHIN_MS,
  );
});

describeImages('ports that images expose, on the network of the host', () => {
  setUpImages({ NETWORK: 'shared' });

  test(
    'a program that ignores PORT fails, and the reason names the port of the image',
    async () => {
      await pushServer('ignorant', 18_234, ['18234/tcp']);
      const health_check = { grace_period_seconds: 5 };
      const application = await imageApplication(imageName('fixed:ignorant'), { health_check });
      const { status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual([
        'failed',
        expect.stringMatching(/listens on 18234\. The image exposes 18234, but .* PORT variable names\./),
      ]);
    },
    WITHIN_MS,
  );

  test(
    'a program that ends because it may not have the port says so too',
    async () => {
      // As an ordinary user: a port below 1024 is not for it.
      await pushServer('refused', 80, ['80/tcp']);
      const application = await imageApplication(imageName('fixed:refused'));
      const { status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual([
        'failed',
        expect.stringMatching(/exited with code 1 .*\. The image exposes 80, but .* PORT variable names\./),
      ]);
    },
    WITHIN_MS,
  );
});
