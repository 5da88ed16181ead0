// A project with something of each kind.
const SHOP = `
databases:
  main: { engine: postgresql, engine_version: 16, storage_gb: 2 }
buckets:
  BUCKET: { versioning: true }
volumes:
  uploads:
    size_gb: 1
    application: shop
    mount_path: /data
applications:
  shop:
    description: The web shop
    source: { type: git, repository_url: 'https://git.example.com/team/shop.git', branch: main }
    settings:
      maintenance_mode: true
      build: { root_directory: web }
    processes:
      web: { instances: 2, command: npm start }
      worker: { command: npm run worker }
    variables:
      DATABASE_URL: \${database.main.url}
      LOG_LEVEL: debug
      RETRIES: 010
      PRICE: $\${not a reference}
      STRIPE_KEY: { secret: true }
      BUILD_ONLY: { value: 'yes', available_at: build }
    schedules:
      nightly: { cron: '30 2 * * *', command: npm run report }
    domains:
      Shop.Example.com: { dns: manual }
`;
let serial = 0;

/** The file, and the name of its bucket, which is unique on the whole platform. */
export function shop(): { file: string; bucket: string } {
  const bucket = `assets-${process.pid}-${(serial += 1)}`;
  return { file: SHOP.replace('BUCKET', bucket), bucket };
}
