// An authorization server that this project did not write, and a small API that takes its tokens.
//
// Prints its URL, then ends with its standard input. Beside oidc-provider's own routes:
//   POST /seed     {"refresh_token": ...}: what a human would get by logging in
//   POST /expire   ends all sessions: access tokens that were seen before are rejected from here on
//   GET  /counts   what the server has seen, as JSON
//   any  /orders   401 without an access token that lives, else 200

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are installed elsewhere: in the target directory, which this file is not in.
const require = createRequire(`${process.env.OIDC_MODULES}/x.js`);
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const counts = { orders: 0, rejected: 0, applied: {}, tokens: 0, consumed: 0, revoked: 0, errors: [] };
const seen = new Set();
const dead = new Set();

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${server.address().port}`;

const client = (id, grants) => ({
  client_id: id,
  client_secret: `${id}-secret`,
  grant_types: grants,
  redirect_uris: grants.includes('authorization_code') ? ['https://client.test/cb'] : [],
  response_types: grants.includes('authorization_code') ? ['code'] : [],
});
const provider = new Provider(url, {
  clients: [
    client('desk', ['client_credentials']),
    client('human', ['authorization_code', 'refresh_token']),
  ],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
  rotateRefreshToken: true,
  scopes: ['openid', 'offline_access', 'orders'],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: { AccessToken: 600, ClientCredentials: 600, RefreshToken: 3600, Grant: 3600 },
});
provider.on('grant.success', () => { counts.tokens += 1; });
provider.on('grant.error', (_, error) => { counts.errors.push(error.error_detail ?? error.message); });
provider.on('refresh_token.consumed', () => { counts.consumed += 1; });
provider.on('grant.revoked', () => { counts.revoked += 1; });
const handle = provider.callback();

async function seed() {
  const found = await provider.Client.find('human');
  const grant = new provider.Grant({ accountId: 'alice', clientId: 'human' });
  grant.addOIDCScope('openid offline_access');
  const grantId = await grant.save();
  const token = new provider.RefreshToken({
    accountId: 'alice', client: found, grantId, scope: 'openid offline_access', gty: 'authorization_code',
  });
  return { refresh_token: await token.save() };
}

async function order(request) {
  counts.orders += 1;
  const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  const known = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
  if (!known || dead.has(token)) {
    counts.rejected += 1;
    return [401, { error: 'invalid_token' }];
  }
  seen.add(token);
  const operation = request.headers['x-operation-id'];
  counts.applied[operation] = (counts.applied[operation] ?? 0) + 1;
  return [200, { applied: operation }];
}

server.on('request', async (request, response) => {
  const answer = (status, document) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document));
  };
  if (request.url === '/orders') answer(...await order(request));
  else if (request.url === '/seed') answer(200, await seed());
  else if (request.url === '/counts') answer(200, counts);
  else if (request.url === '/expire') {
    seen.forEach((token) => dead.add(token));
    answer(200, {});
  } else handle(request, response);
});

console.log(url);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
