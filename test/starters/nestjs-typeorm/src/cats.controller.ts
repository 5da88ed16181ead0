import { Controller, Get, Post } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Cat } from './cat.entity';

@Controller()
export class CatsController {
  constructor(@InjectRepository(Cat) private readonly cats: Repository<Cat>) {}

  @Get()
  list() {
    return this.cats.find();
  }

  @Post()
  create() {
    return this.cats.save({ name: 'Tom' });
  }
}
