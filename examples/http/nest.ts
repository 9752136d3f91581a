// Nest 11 on Express: the token service under /auth, and the guard before every controller.
import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Module, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request } from 'express';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import {
  bearerGuard,
  fixedAccounts,
  nestGuard,
  tokenHandler,
  toNodeListener,
} from 'tokenwright/http';

class OrdersController {
  show(request: Request) {
    return { at: request.originalUrl, account: request.token?.account };
  }
}
// What `@Controller('orders')`, `@Get(':id')`, `@Req()` and `@Module(…)` do; Node alone knows no decorators.
Controller('orders')(OrdersController);
const show = Object.getOwnPropertyDescriptor(OrdersController.prototype, 'show');
if (show) Get(':id')(OrdersController.prototype, 'show', show);
Req()(OrdersController.prototype, 'show', 0);
class AppModule {}
Module({ controllers: [OrdersController] })(AppModule);

export async function start(tokens: TokenService): Promise<Server> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  const handler = tokenHandler({ tokens, authenticate, onError: console.error });
  app.use('/auth', toNodeListener(handler));
  const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });
  app.useGlobalGuards(nestGuard(guard));
  return app.listen(0, '127.0.0.1');
}

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const server = await start(tokens);
const { port } = server.address() as AddressInfo;
const orders = `http://127.0.0.1:${port}/orders/7`;
console.log((await fetch(orders)).status); // 401
const response = await fetch(orders, { headers: { authorization: `Bearer ${value}` } });
console.log(await response.text()); // {"at":"/orders/7","account":"ada"}
server.close();
